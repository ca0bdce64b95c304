//go:build linux

package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/notebook"
)

// fake serves as an engine on a socket.
func fake(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
	return "unix://" + path
}

func pong(version string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_ping" {
			w.Header().Set("Api-Version", version)
			return
		}
		h(w, r)
	}
}

func TestDialAgreesOnAVersion(t *testing.T) {
	for version, want := range map[string]string{"1.41": "/v1.41", "1.44": "/v1.44", "1.99": "/v" + maxAPI, "2.0": "/v" + maxAPI} {
		e, err := dial(t.Context(), fake(t, pong(version, nil)))
		if err != nil || !strings.HasSuffix(e.base, want) {
			t.Errorf("an engine of %s: %+v, %v; want %s", version, e, err, want)
		}
	}
	for version, want := range map[string]string{"1.40": "upgrade", "": "is not a Docker Engine", "x": "upgrade"} {
		if _, err := dial(t.Context(), fake(t, pong(version, nil))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an engine of %q: %v; want an error with %q", version, err, want)
		}
	}
}

func TestEngineIsBounded(t *testing.T) {
	e, err := dial(t.Context(), fake(t, pong("1.41", func(w http.ResponseWriter, r *http.Request) {
		switch filepath.Base(r.URL.Path) {
		case "endless":
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "garbage":
			io.WriteString(w, "\x00\xff{")
		case "refusal":
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"message":"not so"}`)
		case "silent":
			<-r.Context().Done()
		}
	})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var into map[string]any
	for path, want := range map[string]string{"/endless": "more than", "/garbage": "is not the JSON", "/refusal": "not so (409)"} {
		if err := e.do(ctx, http.MethodGet, path, nil, nil, &into); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", path, err, want)
		}
	}
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if err := e.do(short, http.MethodGet, "/silent", nil, nil, &into); err == nil || short.Err() == nil {
		t.Errorf("an engine that does not answer: %v, want the context's error", err)
	}
}

// TestRemoveLeavesStrangersAlone has a container of the name that Tare wanted, without Tare's label.
func TestRemoveLeavesStrangersAlone(t *testing.T) {
	deleted := false
	socket := fake(t, pong("1.41", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted = true
		}
		io.WriteString(w, `{"Id":"x","Config":{"Labels":{"tare":"another"}}}`)
	}))
	entry := journal.Entry{Kind: kindDocker, Target: "tare-x", Detail: map[string]string{"host": socket, "guest": "x"}}
	if err := removeDocker(t.Context(), entry); err != nil || deleted {
		t.Errorf("removing: %v, deleted %t; want no change to it", err, deleted)
	}
}

// TestRecoverWaitsForWhatWasAskedFor has the container appear after a while, as when Tare died just after asking.
func TestRecoverWaitsForWhatWasAskedFor(t *testing.T) {
	start, deleted := time.Now(), false
	socket := fake(t, pong("1.41", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case deleted || time.Since(start) < 200*time.Millisecond:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"message":"no such container"}`)
		case r.Method == http.MethodDelete:
			deleted = true
		default:
			io.WriteString(w, `{"Id":"x","Config":{"Labels":{"tare":"x"}}}`)
		}
	}))
	entry := journal.Entry{Kind: kindDocker, Target: "tare-x", Detail: map[string]string{
		"host": socket, "guest": "x", "time": start.Format(time.RFC3339Nano),
	}}
	if err := undoDocker(t.Context(), entry); err != nil || !deleted {
		t.Errorf("undoing: %v, deleted %t; want it deleted", err, deleted)
	}
}

// Docker 20.10 cannot remove a container that ends just before the kill. A second request removes it.
func TestRemoveAContainerThatJustEnded(t *testing.T) {
	asked := 0
	socket := fake(t, pong("1.41", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case asked > 1:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"message":"no such container"}`)
		case r.Method == http.MethodDelete:
			if asked++; asked == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				io.WriteString(w, `{"message":"Could not kill running container x, cannot remove - Container x is not running"}`)
			}
		default:
			io.WriteString(w, `{"Id":"x","Config":{"Labels":{"tare":"x"}}}`)
		}
	}))
	entry := journal.Entry{Kind: kindDocker, Target: "tare-x", Detail: map[string]string{"host": socket, "guest": "x"}}
	if err := removeDocker(t.Context(), entry); err != nil || asked != 2 {
		t.Errorf("removing: %v after %d requests; want it removed by the second", err, asked)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x05hello\x02\x00\x00\x00\x00\x00\x00\x01!"))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xffcut"))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// An invalid UTF-8 byte becomes "?", so nothing grows.
		if got := plain(b); len(got) > len(b) {
			t.Errorf("plain made %d bytes of %d", len(got), len(b))
		}
	})
}

func TestPlain(t *testing.T) {
	var b bytes.Buffer
	for _, s := range []string{"one\n", "two"} {
		fmt.Fprintf(&b, "\x02\x00\x00\x00\x00\x00\x00%c%s", len(s), s)
	}
	if got := plain(b.Bytes()); got != "one\ntwo" {
		t.Errorf("plain: %q", got)
	}
}

// A device whose description has programs run is one that the engine finds itself, or that it cannot give.
func TestDeviceWithHook(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	e := device.Edits{
		Names: []string{"v.org/c=d"}, Dirs: []string{dir}, Nodes: []device.Node{{Host: "/dev/null", Path: "/dev/x"}},
		Mounts: []device.Mount{{Host: "/etc/passwd", Path: "/x"}}, Hooks: []device.Hook{{When: "createContainer", Hook: specs.Hook{Path: "/bin/true"}}},
	}
	for _, c := range []struct {
		reads []string
		want  string
	}{{nil, `{"features": {"cdi": true}}`}, {[]string{"/etc/cdi", "/no/such"}, "not in " + dir}, {[]string{"/etc/cdi", dir}, ""}, {[]string{link}, ""}} {
		err := engineInfo{CDISpecDirs: c.reads}.finds(e)
		_, is := errors.AsType[*engine.UnsupportedError](err)
		if is != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("an engine that reads in %q: %v; want %q", c.reads, err, c.want)
		}
	}
	for _, hooked := range []bool{true, false} {
		s := engine.Spec{ID: "x", Provisioning: notebook.Vanilla, Instance: notebook.Instance{Cores: 1, Memory: 1 << 30}, Devices: e}
		if !hooked {
			s.Devices.Hooks = nil
		}
		if err := (engineInfo{}).finds(s.Devices); err != nil && !hooked {
			t.Errorf("a device without: %v", err)
		}
		c, err := configure("image", "/run", s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(c.HostConfig)
		if err != nil {
			t.Fatal(err)
		}
		asked, told := strings.Contains(string(text), `"DeviceRequests":[{"Driver":"cdi","DeviceIDs":["v.org/c=d"]}]`), strings.Contains(string(text), "/dev/x") || strings.Contains(string(text), "/etc/passwd")
		if asked != hooked || told == hooked {
			t.Errorf("hooks %t: %s", hooked, text)
		}
	}
}

// answering is an engine in this process whose answers the caller makes.
type answering func(r *http.Request) (status int, body string)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	status, body := a(r)
	return &http.Response{Status: http.StatusText(status), StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// FuzzAnswers has an engine answer with anything. Only a container that bears the label of its guest is ever removed, and only an image
// that bears the label of its content is used.
func FuzzAnswers(f *testing.F) {
	const digest = "sha256:0123456789abcdef"
	f.Add(200, `{"Id":"x","State":{"Status":"exited","ExitCode":1,"OOMKilled":true,"Error":"e"},"Config":{"Labels":{"tare":"x"}}}`, 204, "")
	f.Add(200, `{"Config":{"Labels":{"tare.image":"`+digest+`"}},"GraphDriver":{"Name":"overlay2","Data":{"UpperDir":"/u","LowerDir":"/a:/b:"}}}`, 404, `{"message":"no such"}`)
	f.Add(200, `{"Config":{"Labels":{"tare":"another"}}}`, 409, `{"message":"removal in progress"}`)
	f.Add(500, `{"message":`, 500, "\x1b[2J")
	f.Add(200, `{"DockerRootDir":"/var/lib/docker","CDISpecDirs":["/etc/cdi",""],"Version":"27.0","ApiVersion":"1.47"}`, 200, "[]")
	f.Add(200, `null`, 302, `null`)
	f.Add(404, `{"Config":null}`, 0, "\x01\x00\x00\x00\xff\xff\xff\xffcut")
	f.Fuzz(func(t *testing.T, status int, body string, then int, other string) {
		var labelled containerState
		parsed := json.Unmarshal([]byte(body), &labelled) == nil
		for label, right := range map[string]bool{"x": parsed && labelled.Config.Labels[labelGuest] == "x", "": false} {
			gets, deleted := 0, false
			e := &daemon{host: "unix:///d.sock", base: "http://docker", http: &http.Client{Transport: answering(func(r *http.Request) (int, string) {
				switch {
				case r.Method == http.MethodDelete:
					deleted = true
					return then, other
				case gets > 0:
					return http.StatusNotFound, ""
				}
				gets++
				return status, body
			})}}
			entry := journal.Entry{Kind: kindDocker, Target: "tare-x", Detail: map[string]string{"guest": label}}
			err := e.remove(t.Context(), entry, time.Time{})
			if deleted && (!right || status >= 400) {
				t.Errorf("the guest %q: removed a container that %d %q describes", label, status, body)
			}
			if err == nil && right && !deleted && status < 400 {
				t.Errorf("the guest %q: kept a container that %d %q describes", label, status, body)
			}
		}

		asked := 0
		e := &daemon{host: "unix:///d.sock", base: "http://docker", http: &http.Client{Transport: answering(func(r *http.Request) (int, string) {
			if asked++; asked%2 == 1 {
				return status, body
			}
			return then, other
		})}}
		if _, err := e.imageFor(t.Context(), &image.Tree{Digest: digest, Dir: t.TempDir()}); err == nil && !strings.Contains(body+other, "tare") {
			t.Errorf("an image of %q and %q is used", body, other)
		}
		for _, into := range []any{&containerState{}, &imageState{}, &engineInfo{}} {
			if err := e.do(t.Context(), http.MethodGet, "/x", nil, nil, into); err != nil && (err.Error() == "" || len(err.Error()) > 1000+len(body)+len(other)) {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
		if said := (&guest{daemon: e, name: "x"}).Diagnose(); !strings.HasPrefix(said, "the engine: ") {
			t.Errorf("the diagnosis is %q", said)
		}
	})
}

// Without an engine the probe says once what to do.
func TestProbeWithoutAnEngine(t *testing.T) {
	d := &Driver{Host: "unix://" + filepath.Join(t.TempDir(), "docker.sock")}
	c := d.Probe(t.Context(), "docker")
	if c.Answer != notebook.NotSupported || !strings.Contains(c.Do, "DOCKER_HOST") || strings.Contains(c.Why, "DOCKER_HOST") || !strings.Contains(c.Why, "docker.sock") {
		t.Errorf("%+v", c)
	}
}

// A disk of the engine's own is noted; a shared one, or a folder that does not exist, is not.
func TestAnotherFileSystemIsNoted(t *testing.T) {
	state := t.TempDir()
	for there, want := range map[string]bool{"/proc": true, state: false, "/no/such/folder": false} {
		notes := elsewhere(there, state)
		if got := len(notes) == 1 && notes[0].Is("engine-writes-elsewhere"); got != want || len(notes) > 1 {
			t.Errorf("%s: %v", there, notes)
		}
	}
}

// Docker unpacks zstd from version 23.0 (API 1.42) on. Every version unpacks the other layers, and none pulls lazily.
func TestZstdNeedsANewerEngine(t *testing.T) {
	for version, newer := range map[string]bool{"1.41": false, "1.42": true, "1.47": true} {
		d := &Driver{Host: fake(t, pong(version, nil))}
		for text, can := range map[string]bool{"no": true, "gzip:8": true, "none:1": true, "zstd:8": newer, "estargz:8": false} {
			err := d.Supports(t.Context(), notebook.Treatment{Factors: map[string]string{notebook.FactorPull.Name: text}})
			if _, refused := errors.AsType[*engine.UnsupportedError](err); refused == can || can && err != nil {
				t.Errorf("API %s, %s: %v", version, text, err)
			}
		}
	}
}
