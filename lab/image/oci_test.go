package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/image/imagetest"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func newStore(t testing.TB) *Store {
	t.Helper()
	require.Root(t)
	s, err := OpenStore(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := filepath.Glob(filepath.Join(s.root, tmpDir, "*")); err != nil || len(left) > 0 {
			t.Errorf("left in the store's temporary folder: %v, %v", left, err)
		}
	})
	return s
}

// imageOf makes an image for this host of the given layers.
func imageOf(t testing.TB, change func(*v1.ConfigFile), layers ...[]byte) v1.Image {
	t.Helper()
	img, err := imagetest.Image(change, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func appImage(t testing.TB) v1.Image {
	return imageOf(t, func(c *v1.ConfigFile) {
		c.Config = v1.Config{Env: []string{"A=1"}, WorkingDir: "/srv", Entrypoint: []string{"/app"}, Cmd: []string{"-v"}, User: "app:video"}
	},
		archiveOf(t, file("etc/passwd", "app:x:1000:1000::/:/bin/sh\n"), file("etc/group", "video:x:44:app\n"), file("old", "1"), file("app", "lower")),
		archiveOf(t, file(".wh.old", ""), file("app", "upper"), hard("app2", "app")))
}

const appListing = `.tare/
.tare/run/
.tare/scratch/
.tare/work/
app2=upper
app=upper
dev/
etc/
etc/group=video:x:44:app
etc/passwd=app:x:1000:1000::/:/bin/sh
proc/
srv/
sys/
tmp/`

func checkApp(t *testing.T, img *Image) {
	t.Helper()
	want := Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "A=1"}, WorkingDir: "/srv", Entrypoint: []string{"/app"}, Cmd: []string{"-v"}, UID: 1000, GID: 44, Home: "/"}
	if got := fmt.Sprintf("%+v", img.Config); got != fmt.Sprintf("%+v", want) {
		t.Errorf("config %v, want %v", got, want)
	}
	// The two files end with a newline of their own.
	if got := strings.ReplaceAll(listing(t, img.Dir), "\n\n", "\n"); got != appListing {
		t.Errorf("%s\nwant\n%s", got, appListing)
	}
	if len(img.Warnings) != 0 {
		t.Errorf("warnings %q", img.Warnings)
	}
}

func writeLayout(t testing.TB, imgs ...v1.Image) string {
	t.Helper()
	d := filepath.Join(t.TempDir(), "layout")
	if err := imagetest.Write(d, imgs...); err != nil {
		t.Fatal(err)
	}
	return d
}

func writeArchive(t testing.TB, imgs ...v1.Image) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "image.tar")
	m := map[name.Tag]v1.Image{}
	for i, img := range imgs {
		tag, err := name.NewTag(fmt.Sprint("example.com/app:n", i))
		if err != nil {
			t.Fatal(err)
		}
		m[tag] = img
	}
	if err := tarball.MultiWriteToFile(f, m); err != nil {
		t.Fatal(err)
	}
	return f
}

// The same image from every place is the same, and is unpacked once.
func TestOCIPlaces(t *testing.T) {
	img := appImage(t)
	digest, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	push(t, host+"/app:1", img)
	dir, arch := writeLayout(t, img), writeArchive(t, img)
	plain, err := os.ReadFile(arch)
	if err != nil {
		t.Fatal(err)
	}
	gz := filepath.Join(t.TempDir(), "image.tar.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(plain)
	z.Close()
	if err := os.WriteFile(gz, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	layoutTar := filepath.Join(t.TempDir(), "oci.tar")
	var lt bytes.Buffer
	tw := tar.NewWriter(&lt)
	if err := tw.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	tw.Close()
	if err := os.WriteFile(layoutTar, lt.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_HOST", "unix://"+fakeDaemon(t, "app:1", digest.String(), plain))
	manifest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ ref, from string }{
		{dir, "the OCI layout"}, {"oci:" + dir, "the OCI layout"}, {"oci:" + dir + ":n0", "the OCI layout"}, {"oci:" + dir + "@" + manifest.String(), "the OCI layout"},
		{arch, "the archive"}, {"docker-archive:" + arch, "the archive"}, {"docker-archive:" + arch + ":example.com/app:n0", "the archive"},
		{gz, "the archive"}, {layoutTar, "the archive"},
		{host + "/app:1", "the registry " + host}, {"docker://" + host + "/app:1", "the registry " + host}, {host + "/app@" + manifest.String(), "the registry " + host},
		{"docker-daemon:app:1", "the Docker daemon"}, {"app:1", "the Docker daemon"},
	} {
		s := newStore(t)
		for range 2 { // unpacked, and from the store
			got, err := s.OCI(t.Context(), tt.ref, nil)
			if err != nil {
				t.Errorf("%s: %v", tt.ref, err)
				continue
			}
			if got.Digest != digest.String() || got.Reference != tt.ref || !strings.HasPrefix(got.From, tt.from) {
				t.Errorf("%s is %s from %s, want %s from %s", tt.ref, got.Digest, got.From, digest, tt.from)
			}
			checkApp(t, got)
		}
	}
}

func push(t testing.TB, ref string, img v1.Image) {
	t.Helper()
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r, img); err != nil {
		t.Fatal(err)
	}
}

// fakeDaemon answers as dockerd does, for one image.
func fakeDaemon(t testing.TB, ref, id string, saved []byte) (socket string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/images/", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/images/" + ref + "/json":
			fmt.Fprintf(w, `{"Id":%q}`, id)
		case "/images/" + ref + "/get":
			w.Write(saved)
		default:
			http.Error(w, `{"message":"No such image"}`, http.StatusNotFound)
		}
	})
	return serveUnix(t, mux)
}

func serveUnix(t testing.TB, h http.Handler) string {
	t.Helper()
	d, err := os.MkdirTemp("", "d") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	l, err := net.Listen("unix", filepath.Join(d, "s"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(h)
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	return filepath.Join(d, "s")
}

// A bare name that the daemon does not have, or that no daemon answers for, comes from the registry, and the user
// is told.
func TestOCIDaemonThenRegistry(t *testing.T) {
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/app:1"
	push(t, ref, appImage(t))
	for _, socket := range []string{fakeDaemon(t, "other", "", nil), "/nonexistent/docker.sock"} {
		t.Setenv("DOCKER_HOST", "unix://"+socket)
		s := newStore(t)
		var said []string
		img, err := s.OCI(t.Context(), ref, func(w string) { said = append(said, w) })
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(img.From, "the registry") || !strings.Contains(strings.Join(said, "\n"), "not from the Docker daemon") {
			t.Errorf("from %s; said %q", img.From, said)
		}
		if _, err := s.OCI(t.Context(), "docker-daemon:"+ref, nil); err == nil {
			t.Error("the daemon that was asked for did not matter")
		}
	}
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	if _, err := newStore(t).OCI(t.Context(), "docker-daemon:x", nil); err == nil || !strings.Contains(err.Error(), "unix:///PATH") {
		t.Errorf("%v", err)
	}
}

// The store keeps an image whose registry does not answer, but not one that its registry refuses.
func TestOCIRegistryGone(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	ref := "docker://" + strings.TrimPrefix(server.URL, "http://") + "/app:1"
	push(t, strings.TrimPrefix(ref, "docker://"), appImage(t))
	s := newStore(t)
	first, err := s.OCI(t.Context(), ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.OCI(t.Context(), ref+"-missing", nil); err == nil {
		t.Error("a missing image was found")
	}
	server.Close()
	again, err := s.OCI(t.Context(), ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest != first.Digest || again.From != "the store" || len(again.Warnings) != 1 || !strings.Contains(again.Warnings[0], "does not answer") {
		t.Errorf("%s from %s with %q", again.Digest, again.From, again.Warnings)
	}
	if _, err := s.OCI(t.Context(), ref+"2", nil); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("an image never seen: %v", err)
	}
}

func TestOCIPlatform(t *testing.T) {
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	mine, theirs := appImage(t), imageOf(t, func(c *v1.ConfigFile) { c.Architecture = other }, archiveOf(t, file("theirs", "")))
	idx := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: theirs, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: other}}},
		mutate.IndexAddendum{Add: mine, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}},
		mutate.IndexAddendum{Add: theirs, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}, Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest"}}},
	)
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/app:1"
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(r, idx); err != nil {
		t.Fatal(err)
	}
	flat, nested := filepath.Join(t.TempDir(), "flat"), filepath.Join(t.TempDir(), "nested")
	if _, err := layout.Write(flat, idx); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Write(nested, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: idx})); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	for _, ref := range []string{"docker://" + ref, flat, nested} {
		img, err := s.OCI(t.Context(), ref, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		checkApp(t, img)
	}
	for _, tt := range []struct{ ref, want string }{
		{writeLayout(t, theirs), `for "linux/` + other + `" by its configuration`},
		{writeLayout(t, mine, imageOf(t, nil)), "several images fit"},
		{writeLayout(t, mine, imageOf(t, nil)) + ":n7", "no such file"},
		{"oci:" + writeLayout(t, mine, imageOf(t, nil)) + ":n7", `no image "n7"`},
		{writeArchive(t, mine, imageOf(t, nil)), "2 images; say which"},
		{"docker-archive:" + writeArchive(t, mine, imageOf(t, nil)) + ":example.com/app:n7", "has no image"},
		{writeLayout(t), "no image for linux/"},
	} {
		if _, err := s.OCI(t.Context(), tt.ref, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.ref, err, tt.want)
		}
	}
	two := []v1.Image{mine, imageOf(t, nil)}
	for _, ref := range []string{"oci:" + writeLayout(t, two...) + ":n0", "docker-archive:" + writeArchive(t, two...) + ":example.com/app:n0"} {
		img, err := s.OCI(t.Context(), ref, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		checkApp(t, img)
	}
}

// Images that are not what their digests say, or no images at all.
func TestOCIBad(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	img := appImage(t)
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	blob := func(d string, h v1.Hash) string { return filepath.Join(d, "blobs", h.Algorithm, h.Hex) }
	rewrite := func(path string, change func([]byte) []byte) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(b), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	broken := func(h v1.Hash, change func([]byte) []byte) string {
		d := writeLayout(t, img)
		rewrite(blob(d, h), change)
		return d
	}
	flip := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	}
	otherLayer := broken(manifest.Layers[0].Digest, func([]byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(archiveOf(t, file("evil", "")))
		z.Close()
		return b.Bytes()
	})
	missing := writeLayout(t, img)
	if err := os.Remove(blob(missing, manifest.Layers[1].Digest)); err != nil {
		t.Fatal(err)
	}
	linked := writeLayout(t, img)
	if err := os.Remove(blob(linked, manifest.Config.Digest)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", blob(linked, manifest.Config.Digest)); err != nil {
		t.Fatal(err)
	}
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, bytes.Repeat([]byte("junk"), 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.tar")
	if err := os.WriteFile(other, archiveOf(t, file("readme", "")), 0o644); err != nil {
		t.Fatal(err)
	}
	hugeManifest := filepath.Join(t.TempDir(), "huge.tar")
	if err := os.WriteFile(hugeManifest, archiveOf(t, file("manifest.json", strings.Repeat(" ", maxJSON+1))), 0o644); err != nil {
		t.Fatal(err)
	}
	selfLink := filepath.Join(t.TempDir(), "self.tar")
	if err := os.WriteFile(selfLink, archiveOf(t, file("manifest.json", `[{"Config":"c","Layers":["l"]}]`), link("c", "c"), link("l", "l")), 0o644); err != nil {
		t.Fatal(err)
	}
	noLayers := filepath.Join(t.TempDir(), "none.tar")
	if err := os.WriteFile(noLayers, archiveOf(t, file("manifest.json", `[{"Config":"c","Layers":null}]`), file("c", `{"rootfs":{"type":"layers","diff_ids":["sha256:`+strings.Repeat("0", 64)+`"]}}`)), 0o644); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	for _, tt := range []struct{ ref, want string }{
		{"", "must be a reference"}, {"UPPER CASE", "not"}, {"/nonexistent", "no such file"}, {"oci:/nonexistent:x", "there is no folder"},
		{t.TempDir(), "it is not an OCI layout"}, {junk, "not an archive of an image"}, {other, "neither manifest.json nor oci-layout"},
		{fifo, "neither an OCI layout folder"}, {"docker-archive:" + fifo, "there is no file"},
		{otherLayer, "must be sha256:"}, {missing, "no such file"}, {linked, "escapes from parent"},
		{broken(manifest.Layers[0].Digest, func(b []byte) []byte { return b[:len(b)/2] }), "unexpected EOF"},
		{broken(manifest.Config.Digest, flip("A=1", "A=2")), "must be " + manifest.Config.Digest.String()},
		{broken(manifest.Config.Digest, func(b []byte) []byte { return append(b, ' ') }), "bytes; must be"},
		{broken(digest, flip("sha256", "sha255")), "must be " + digest.String()},
		{broken(digest, func(b []byte) []byte { return []byte(strings.Repeat("[", len(b))) }), "must be " + digest.String()},
		{hugeManifest, "is not a file of at most"}, {selfLink, "too many levels of symbolic links"}, {noLayers, "layer"},
		{writeLayout(t, imageOf(t, func(c *v1.ConfigFile) { c.OS = "windows" })), `for "windows/`},
		{writeLayout(t, imageOf(t, func(c *v1.ConfigFile) { c.Config.User = "ghost" }, archiveOf(t, file("f", "")))), "unable to find user ghost"},
		{writeLayout(t, imageOf(t, nil, archiveOf(t, file("../f", "")))), "archive refused"},
		{writeLayout(t, imageOf(t, nil, archiveOf(t, link(".tare", "/etc")))), "is reserved for Tare"},
	} {
		img, err := s.OCI(t.Context(), tt.ref, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v, want %q", tt.ref, img, err, tt.want)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(s.root, keptDir, "*")); err != nil || len(kept) != 0 {
		t.Errorf("kept: %v, %v", kept, err)
	}
}

func TestOCIRandom(t *testing.T) {
	s := newStore(t)
	img, err := random.Image(100_000, 5)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.OCI(t.Context(), writeLayout(t, img), nil)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(got.Dir, "random_file_*"))
	if err != nil || len(names) != 5 {
		t.Errorf("%v, %v", names, err)
	}
}

// A registry or daemon that falls silent is given up.
func TestStall(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.WriteHeader(200)
			w.Write([]byte("half"))
			w.(http.Flusher).Flush()
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	c := http.Client{Transport: &stallTransport{base: http.DefaultTransport, header: 100 * time.Millisecond, body: 100 * time.Millisecond}}
	if _, err := c.Get(server.URL + "/header"); !errors.Is(err, errStalled) {
		t.Errorf("no header: %v", err)
	}
	resp, err := c.Get(server.URL + "/body")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); !errors.Is(err, errStalled) || string(b) != "half" {
		t.Errorf("half a body: %q, %v", b, err)
	}
}

func TestOCINoSpace(t *testing.T) {
	d := smallFS(t, "size=3m")
	s, err := OpenStore(filepath.Join(d, "store"))
	if err != nil {
		t.Fatal(err)
	}
	s.limits.reserve = 0
	big := archiveOf(t, file("a", strings.Repeat("x", 4<<20)))
	ref := writeLayout(t, imageOf(t, nil, big))
	in := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(in, big, 0o644); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"OCI":     func() error { _, err := s.OCI(t.Context(), ref, nil); return err },
		"archive": func() error { _, err := s.OCI(t.Context(), writeArchive(t, imageOf(t, nil, big)), nil); return err },
		"Files":   func() error { _, err := s.Files(t.Context(), map[string]Source{"f": {Path: in}}); return err },
	} {
		if err := do(); !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "free some") {
			t.Errorf("%s: %v", what, err)
		}
		for _, sub := range []string{tmpDir, keptDir} {
			if left, err := os.ReadDir(filepath.Join(s.root, sub)); err != nil || len(left) != 0 {
				t.Errorf("%s left in %s: %v, %v", what, sub, left, err)
			}
		}
	}
}
