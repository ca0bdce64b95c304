package workload

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"
)

const served = `name: shop
image: {suite: trixie, packages: [busybox]}
inputs_from: jars.txt
service:
  command: [/bin/serve, "{address}", "{port}", "{memory}"]
  port: 8080
load:
  ready: [/bin/ready, "{address}"]
  command: [/bin/ask, "{address}", "{port}"]
metric: {name: response time, unit: s, from: mean}
also:
  - {name: p99, unit: s}
`

func TestAServiceAndItsLoad(t *testing.T) {
	read := func(text, list string) (*Workload, error) {
		return Read(fstest.MapFS{File: {Data: []byte(text)}, "jars.txt": {Data: []byte(list)}}, "shop")
	}
	w, err := read(served, "")
	if err != nil {
		t.Fatal(err)
	}
	if d := w.Service.Starting(true); d != 20*time.Minute {
		t.Errorf("an emulated service may take %v to start, want ten times two minutes", d)
	}
	for _, c := range []struct{ from, to, want string }{
		{"port: 8080", "port: 80", "service: port: 80: must be from 1024"},
		{"  port: 8080", "  port: 8080\n  timeout: soon", `service: timeout: "soon": must be a time`},
		{`ready: [/bin/ready, "{address}"]`, "ready: []", "load: needs ready and command"},
		{"{memory}", "{memmory}", "service: {memmory} is unknown"},
		{"metric:", "command: [x]\nmetric:", "command: leave out command and check"},
		{"service:\n  command: [/bin/serve, \"{address}\", \"{port}\", \"{memory}\"]\n  port: 8080\n", "", "load: needs a service"},
		{"- {name: p99, unit: s}", "- {name: p99}", "also: - must have a name and a unit"},
		{"metric:", "files: [a, a]\nmetric:", `files: "a" would be at {work} twice`},
		{"metric:", "prepare: [x, \"{memory}\"]\nmetric:", "prepare: {memory} differs between instances"},
	} {
		text := strings.Replace(served, c.from, c.to, 1)
		if text == served {
			t.Fatalf("%s: the case changes nothing", c.to)
		}
		if _, err := read(text, ""); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "shop/workload.yaml") {
			t.Errorf("%s: got %v, want shop/workload.yaml:LINE: … %s …", c.to, err, c.want)
		}
	}

	sum := strings.Repeat("0a", 32)
	w, err = read(served, "# two\n"+sum+" org.x:lib:1.2\n\n"+sum+" org.x:dist:4.0:tar.gz:bin dist-4.0/tools/stress.jar # one\n")
	if err != nil {
		t.Fatal(err)
	}
	w.Files = []string{"lib-1.2.jar"}
	if _, err := w.inputs(); err == nil || !strings.Contains(err.Error(), "jars.txt:2: lib-1.2.jar is listed twice, or") {
		t.Errorf("a file of the list has the name of another file: %v", err)
	}
	w.Files = nil
	in, err := w.inputs()
	if err != nil || len(in) != 2 || in[0].Name != "lib-1.2.jar" || in[1].Name != "stress.jar" {
		t.Fatalf("%+v, %v", in, err)
	}
	if got, want := mavenPath(in[1].Maven), "org/x/dist/4.0/dist-4.0-bin.tar.gz"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for list, want := range map[string]string{
		sum:                               "shop/jars.txt:1: must be a sha256, Maven coordinates",
		"\nx org.x:lib:1":                 "shop/jars.txt:2: lib-1.jar: sha256: must be 64",
		sum + " org.x":                    "shop/jars.txt:1: ",
		sum + " a:../b:1":                 "shop/jars.txt:1: ",
		sum + " a:b:1\n" + sum + " a:b:1": "shop/jars.txt:2: b-1.jar is listed twice",
	} {
		if w, err = read(served, list); err != nil {
			t.Fatal(err)
		}
		if _, err := w.inputs(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", list, err, want)
		}
	}
}

func TestOneFileOfAnArchive(t *testing.T) {
	dir := t.TempDir()
	var z, g bytes.Buffer
	zw := zip.NewWriter(&z)
	f, err := zw.Create("a/b")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "zipped")
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	gw := gzip.NewWriter(&g)
	tw := tar.NewWriter(gw)
	if err := tw.WriteHeader(&tar.Header{Name: "./a/b", Typeflag: tar.TypeReg, Mode: 0o644, Size: 6}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(tw, "tarred")
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gw.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{"x.whl": {z.Bytes(), "zipped"}, "x.tar.gz": {g.Bytes(), "tarred"}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		var b []byte
		take := func(r io.Reader) (err error) { b, err = io.ReadAll(r); return err }
		if err := member(t.Context(), path, "a/b", take); err != nil || string(b) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, b, err, c.want)
		}
		if err := member(t.Context(), path, "a/c", take); err == nil {
			t.Errorf("%s: read a file that the archive does not have", name)
		}
		ended, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		cancel(why)
		if err := member(ended, path, "a/b", take); !errors.Is(err, why) {
			t.Errorf("%s, with an ended context: %v", name, err)
		}
		if err := member(t.Context(), path, "", take); err != nil || !bytes.Equal(b, c.data) {
			t.Errorf("%s as a whole: %d bytes, %v, want %d", name, len(b), err, len(c.data))
		}
	}
}

// mirror answers each request with its address, and counts the requests.
type mirror struct {
	asked, now atomic.Int32
	full       chan struct{} // closed once the greatest allowed number of requests ran at the same time
}

func (s *mirror) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	if s.now.Add(1) == fetchesAtOnce {
		close(s.full)
	}
	defer s.now.Add(-1)
	select {
	case <-s.full:
	case <-time.After(10 * time.Second):
		return nil, errors.New("no other request arrived in this time")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(r.URL.String()))}, nil
}

func TestMissingFilesAreFetchedSeveralAtOnce(t *testing.T) {
	s := &mirror{full: make(chan struct{})}
	before := http.DefaultClient.Transport
	http.DefaultClient.Transport = s
	t.Cleanup(func() { http.DefaultClient.Transport = before })
	w := &Workload{Name: "jars"}
	for i := range fetchesAtOnce + 1 {
		in := Fetched{Name: fmt.Sprintf("a-%d.jar", i), Maven: fmt.Sprintf("g:a:%d", i)}
		in.SHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(mavenCentral+mavenPath(in.Maven))))
		w.Inputs = append(w.Inputs, in)
	}
	o := Options{Cache: t.TempDir()}
	kept := filepath.Join(o.Cache, w.Inputs[0].SHA256)
	if err := os.WriteFile(kept, []byte(mavenCentral+mavenPath(w.Inputs[0].Maven)), 0o644); err != nil {
		t.Fatal(err)
	}
	say := func(string) {}
	if err := fetchMissing(t.Context(), []*Workload{w, w}, o, say); err != nil { // two workloads with the same files
		t.Fatal(err)
	}
	if n := s.asked.Load(); n != fetchesAtOnce {
		t.Errorf("%d files were fetched, want %d: one is in the cache, and both workloads need the others", n, fetchesAtOnce)
	}
	for _, in := range w.Inputs {
		if _, err := in.fetch(t.Context(), o.Cache, func(what string) { t.Errorf("after all are in the cache: %s", what) }); err != nil {
			t.Error(err)
		}
	}
	w.Inputs = []Fetched{{Name: "other.jar", Maven: "g:a:other", SHA256: strings.Repeat("0", 64)}}
	if err := fetchMissing(t.Context(), []*Workload{w}, o, say); err == nil || !strings.Contains(err.Error(), "workload jars: its file other.jar: ") {
		t.Errorf("a file with another digest: %v", err)
	}
}

// FuzzMember reads one file of an archive with any content.
func FuzzMember(f *testing.F) {
	var z, g bytes.Buffer
	zw, gw := zip.NewWriter(&z), gzip.NewWriter(&g)
	tw := tar.NewWriter(gw)
	in, err := zw.Create("a/b")
	if err != nil {
		f.Fatal(err)
	}
	err = errors.Join(tw.WriteHeader(&tar.Header{Name: "./a/", Typeflag: tar.TypeDir, Mode: 0o755}),
		tw.WriteHeader(&tar.Header{Name: "./a/c", Typeflag: tar.TypeLink, Linkname: "a/b"}),
		tw.WriteHeader(&tar.Header{Name: "./a/b", Typeflag: tar.TypeReg, Mode: 0o644, Size: 6}))
	for _, w := range []io.Writer{in, tw} {
		_, werr := io.WriteString(w, "inside")
		err = errors.Join(err, werr)
	}
	if err := errors.Join(err, zw.Close(), tw.Close(), gw.Close()); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"a/b", "a", "a/c", "../a/b", "", "/"} {
		f.Add(z.Bytes(), false, name)
		f.Add(g.Bytes(), true, name)
	}
	f.Add(g.Bytes(), false, "a/b")
	f.Add(g.Bytes()[:g.Len()/2], true, "a/b")
	f.Fuzz(func(t *testing.T, archive []byte, tarred bool, name string) {
		file := filepath.Join(t.TempDir(), "x.whl")
		if tarred {
			file = filepath.Join(filepath.Dir(file), "x.tar.gz")
		}
		if err := os.WriteFile(file, archive, 0o600); err != nil {
			t.Fatal(err)
		}
		read, whole := 0, false
		err := member(t.Context(), file, name, func(r io.Reader) error {
			read++
			b, err := io.ReadAll(io.LimitReader(r, 1<<20))
			whole = bytes.Equal(b, archive)
			return err
		})
		if err == nil && read != 1 || read > 1 {
			t.Errorf("%q was read %d times, %v", name, read, err)
		}
		if name == "" && (err != nil || !whole) {
			t.Errorf("the archive itself was not read: %v", err)
		}
	})
}
