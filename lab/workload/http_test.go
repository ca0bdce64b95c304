package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/replay"
	"tare/workloads"
)

// asker is the load of workload http, compiled so that it stops at an access to memory that is not its own.
type asker struct{ program, dir string }

func newAsker(t testing.TB) asker {
	t.Helper()
	require.Program(t, "cc")
	a := asker{dir: t.TempDir()}
	a.program = filepath.Join(a.dir, "load")
	source, err := workloads.FS.ReadFile("http/load.c")
	if err != nil {
		t.Fatal(err)
	}
	cc := exec.CommandContext(t.Context(), "cc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-x", "c", "-o", a.program, "-")
	cc.Stdin = bytes.NewReader(source)
	if said, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return a
}

// httpOut is what the load prints.
type httpOut struct {
	Mean, P50, P99, Late float64
	Errors, Requests     int
	PerSecond            float64 `json:"requests_per_second"`
}

// ask runs the load with a request.
func (a asker) ask(t testing.TB, address, request string, args ...string) (out httpOut, said string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "request")
	if err := os.WriteFile(file, []byte(request), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), a.program, append([]string{host, port, "/page?x=1", file}, args...)...)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if len(text) > 0 {
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	return out, stderr.String(), err
}

const get = "GET\nUser-Agent: tare\r\n\r\n"

// A traced load writes when each answered request began and ended.
func TestTheHTTPLoadRecords(t *testing.T) {
	a := newAsker(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "it") }))
	defer s.Close()
	record := filepath.Join(a.dir, "record")
	t.Setenv(RecordVariable, record)
	out, said, err := a.ask(t, s.Listener.Addr().String(), get, "100", "0.5")
	if err != nil || out.Requests != 50 {
		t.Fatalf("%+v, %s, %v", out, said, err)
	}
	f, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	timed, err := replay.ReadOperations(f, nil)
	if err != nil || len(timed) != 50 {
		t.Fatalf("%d operations, %v", len(timed), err)
	}
	sum := time.Duration(0)
	for _, o := range timed {
		sum += o.Requests[0].End - o.Requests[0].Begin
	}
	if mean := sum.Seconds() / 50; math.Abs(mean-out.Mean) > 1e-8 {
		t.Errorf("a mean of %v s recorded, of %v s printed", mean, out.Mean)
	}
	if _, said, err := a.ask(t, s.Listener.Addr().String(), get, "10", "0.5"); err == nil || !strings.Contains(said, "File exists") {
		t.Errorf("over another file: %s, %v", said, err)
	}
}

// The load sends each request when it is due, whole, and reads answers of every form.
func TestTheHTTPLoad(t *testing.T) {
	a := newAsker(t)
	var connections, requests atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch n := requests.Add(1); {
		case r.Method == http.MethodHead:
			w.Header().Set("Content-Length", "5")
		case r.RequestURI != "/page?x=1" || r.Header.Get("User-Agent") != "tare" || r.Method == http.MethodPost && string(body) != strings.Repeat("b", 1<<20):
			http.Error(w, "not what was sent", http.StatusBadRequest)
		case n%4 == 0: // chunked, longer than one read
			for range 3 {
				io.WriteString(w, strings.Repeat("c", 100<<10))
				w.(http.Flusher).Flush()
			}
		case n%4 == 1:
			w.Header().Set("Connection", "close")
			io.WriteString(w, "closed")
		case n%4 == 2:
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
		default:
			io.WriteString(w, "plain")
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	address := s.Listener.Addr().String()
	for request, args := range map[string][]string{
		get:                              {"100", "1"},
		"HEAD\nUser-Agent: tare\r\n\r\n": {"50", "1"},
		"GET\nHost: h\r\nUser-Agent: tare\r\n\r\n":                                               {"50", "1"},
		"POST\nUser-Agent: tare\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("b", 1<<20): {"20", "1"},
	} {
		connections.Store(0)
		requests.Store(0)
		out, said, err := a.ask(t, address, request, args...)
		if n := int(requests.Load()); err != nil || said != "" || out.Errors != 0 || out.Requests != n || fmt.Sprint(n) != args[0] || out.Mean <= 0 || out.P50 > out.P99 {
			t.Errorf("%.10s: %+v of %d requests (%v, %s)", request, out, n, err, said)
		}
		if out.PerSecond > float64(out.Requests)*1.001 || connections.Load() >= requests.Load() { // a slow answer makes the next request open another connection
			t.Errorf("%.10s: %g requests a second, %d connections", request, out.PerSecond, connections.Load())
		}
	}
	if _, said, err := a.ask(t, address, get); err != nil {
		t.Errorf("ready: %v, %s", err, said)
	}
}

// Slow answers delay no further request, and their time is counted from when each was sent.
func TestTheHTTPLoadIsOpen(t *testing.T) {
	a := newAsker(t)
	var alive, most atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := alive.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(500 * time.Millisecond) // what the test is about: a slow answer
		alive.Add(-1)
	}))
	defer s.Close()
	out, said, err := a.ask(t, s.Listener.Addr().String(), get, "100", "1")
	if err != nil || out.Errors != 0 || out.Mean < 0.5 || most.Load() < 40 {
		t.Errorf("%+v, at most %d at a time (%v, %s)", out, most.Load(), err, said)
	}
}

// answers is a server that answers each request with the same bytes and then closes the connection.
func answers(t testing.TB, text func() []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					c.Write(text())
				}
			})
		}
	})
	return l.Addr().String()
}

// A wrong answer fails the request, and the load says why.
func TestTheHTTPLoadRefuses(t *testing.T) {
	a := newAsker(t)
	var text []byte
	address := answers(t, func() []byte { return text })
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":                            "",
		"HTTP/1.0 200\n\nto the end":                                                "",
		"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n":                           "",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n":                       "1 of 1 requests failed: status 404: must be below 400\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok":                            "1 of 1 requests failed: the connection was closed before the end of the answer\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n":                "1 of 1 requests failed: the connection was closed before the end of the answer\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc":            "1 of 1 requests failed: the answer is not HTTP/1.1\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab":       "1 of 1 requests failed: the answer is not HTTP/1.1\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n":           "1 of 1 requests failed: the answer is not HTTP/1.1\n",
		"SSH-2.0-OpenSSH_9.2\r\n":                                                   "1 of 1 requests failed: the answer is not HTTP/1.1\n",
		"":                                                                          "1 of 1 requests failed: the connection was closed before the end of the answer\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n":          "1 of 1 requests failed: the answer is not HTTP/1.1\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n": "",
	} {
		text = []byte(answer)
		if _, said, err := a.ask(t, address, get); said != want || (err != nil) != (want != "") {
			t.Errorf("%.60q: %v, %q; want %q", answer, err, said, want)
		}
	}
	if _, said, err := a.ask(t, "127.0.0.1:1", get); err == nil || said != "1 of 1 requests failed: Connection refused\n" {
		t.Errorf("nobody listens: %v, %q", err, said)
	}
}

// Whatever a server answers, the load ends without a fault.
func FuzzAnswersToTheHTTPLoad(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.0 204\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end", "HTTP/1.1 404 N\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	a := newAsker(f)
	f.Fuzz(func(t *testing.T, answer []byte) {
		address := answers(t, func() []byte { return answer })
		_, said, err := a.ask(t, address, get)
		if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1 || strings.Contains(said, "Sanitizer")) {
			t.Errorf("%v: %s", err, said)
		}
	})
}
