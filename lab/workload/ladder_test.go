package workload

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/ruler"
	"tare/notebook"
	"tare/workloads"
)

// micro is a workload of one C program on this host, which runs without a platform.
type micro struct {
	t      *testing.T
	w      *Workload
	params map[string]string
	values map[string]string
}

func newMicro(t *testing.T, name string, given map[string]string) *micro {
	t.Helper()
	return newMicroOf(t, name, given, nil)
}

// newMicroOf is newMicro with another preparation; nil: the workload's.
func newMicroOf(t *testing.T, name string, given map[string]string, prepare []string) *micro {
	t.Helper()
	require.Program(t, "cc")
	w, err := Find(workloads.FS, name, ".")
	if err != nil {
		t.Fatal(err)
	}
	params, err := w.Resolve(given)
	if err != nil {
		t.Fatal(err)
	}
	work, scratch := t.TempDir(), t.TempDir()
	for program, source := range w.Build {
		if err := w.compile(t.Context(), source, filepath.Join(work, program)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range w.Files {
		text, err := w.file(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(work, filepath.Base(name)), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m := &micro{t, w, params, map[string]string{"work": work, "scratch": scratch, "address": "127.0.0.1"}}
	for k, v := range params {
		m.values[k] = v
	}
	if prepare == nil {
		prepare = w.Prepare
	}
	if len(prepare) > 0 { // moves the files that it leaves to {work}, as Make does
		m.must(prepare)
		entries, err := os.ReadDir(scratch)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := os.Rename(filepath.Join(scratch, e.Name()), filepath.Join(work, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

func (m *micro) command(argv []string) *exec.Cmd {
	argv = Expand(argv, m.values)
	cmd := exec.CommandContext(m.t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "TARE_WORK="+m.values["work"], "TARE_SCRATCH="+m.values["scratch"])
	return cmd
}

func (m *micro) must(argv []string) []byte {
	m.t.Helper()
	cmd := m.command(argv)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%q: %v: %s", cmd.Args, err, said.String())
	}
	return out
}

// refused requires exit status 1 and one line that contains want.
func (m *micro) refused(argv []string, want string) {
	m.t.Helper()
	out, err := m.command(argv).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), want) || strings.Count(string(out), "\n") != 1 {
		m.t.Errorf("%q: %v %q, want exit status 1 and … %s …", argv, err, out, want)
	}
}

// lcg is a*x + c (mod 2^64), the step from which the answers are made.
func lcg(x uint64) uint64 { return 6364136223846793005*x + 1442695040888963407 }

// The test computes each answer only from the workload's description. It uses another language than the program's own check, and
// computes each step where that check jumps.
func cpuAnswer(n int) string {
	x, sum, f := uint64(42), uint64(0), uint64(1)
	for range n * 1000000 {
		x = lcg(x)
		sum += x
		f = f * 48271 % 67108859
	}
	return strings.Join([]string{strconv.FormatUint(x, 10), strconv.FormatUint(sum, 10), strconv.FormatUint(f, 10)}, " ")
}

func ioAnswer(n int) string {
	x := uint64(42)
	for b := range uint64(n * 8) {
		x = lcg(x)
		for w := range uint64(512) {
			x += (b*512+w+1)*6364136223846793005 ^ w
		}
	}
	return strconv.FormatUint(x, 10)
}

func syscallAnswer(n int) string {
	x := uint64(42)
	for range n {
		for _, gave := range []uint64{0, 0, 0, 1000, 300, 1000, 1, 1} {
			x = lcg(x) + gave
		}
	}
	return strconv.FormatUint(x, 10)
}

func forkAnswer(n int) string {
	sum := uint64(0)
	for i := range uint64(n) {
		sum += lcg(i) >> 32 % 251
	}
	return strconv.FormatUint(sum, 10)
}

func faultAnswer(n int) string {
	x := uint64(42)
	for range n {
		for range 2048 {
			x = lcg(x)
		}
		for i := range uint64(1024) {
			x = lcg(x) + (i+1)*6364136223846793005
		}
	}
	return strconv.FormatUint(x, 10)
}

func pingpongAnswer(n int) string {
	x := uint64(42)
	for range 2 * n {
		x = lcg(x)
	}
	return strconv.FormatUint(x, 10)
}

func TestMicroworkloadsAndTheirChecks(t *testing.T) {
	for _, c := range []struct {
		name, amount string // the parameter that says how much work it is
		n            int
		want         func(int) string
	}{
		{"ladder-cpu", "millions", 2, cpuAnswer},
		{"ladder-io", "batches", 150, ioAnswer}, // more than the file's blocks
		{"ladder-syscall", "rounds", 1000, syscallAnswer},
		{"ladder-fork", "children", 20, forkAnswer},
		{"ladder-fault", "rounds", 3, faultAnswer},
		{"pingpong", "trips", 500, pingpongAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMicro(t, c.name, map[string]string{c.amount: strconv.Itoa(c.n)})
			answer := filepath.Join(m.values["scratch"], "answer")
			m.refused(m.w.Check, answer) // there is none
			out := m.must(m.w.Command)
			if _, _, cause := m.w.Figures(ruler.Result{Stdout: out}); cause != nil {
				t.Errorf("its figures: %s", cause)
			}
			m.must(m.w.Check)
			text, err := os.ReadFile(answer)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(string(text)); got != c.want(c.n) {
				t.Errorf("answer %s, want %s", got, c.want(c.n))
			}
			// Answers after one step less or more, no answer, and answers with one changed digit.
			wrong := []string{c.want(c.n - 1), c.want(c.n + 1), "", "x"}
			for i, d := range text {
				if d >= '0' && d <= '9' {
					wrong = append(wrong, string(text[:i])+string('0'+(d-'0'+1)%10)+string(text[i+1:]))
				}
			}
			for _, w := range wrong {
				if err := os.WriteFile(answer, []byte(w), 0o644); err != nil {
					t.Fatal(err)
				}
				m.refused(m.w.Check, "wrong answer: ")
			}
		})
	}
}

func TestMicroworkloadsReportWhatTheyUsed(t *testing.T) {
	figure := func(m *micro, name string) float64 {
		t.Helper()
		_, also, cause := m.w.Figures(ruler.Result{Stdout: m.must(m.w.Command)})
		if cause != nil {
			t.Error(cause)
		}
		return also[name]
	}
	// One fault for each page. Fewer would mean huge pages or pages mapped around a fault; the program itself adds a few.
	faults := figure(newMicro(t, "ladder-fault", map[string]string{"rounds": "10"}), "faults")
	if pages := 10.0 * (2048 + 1024); faults < pages || faults > pages+100 {
		t.Errorf("%g page faults for %g pages", faults, pages)
	}
	if cpus := figure(newMicro(t, "pingpong", map[string]string{"trips": "10"}), "cpus"); cpus != 1 {
		t.Errorf("one: %g CPUs", cpus)
	}
	if runtime.NumCPU() > 1 {
		if cpus := figure(newMicro(t, "pingpong", map[string]string{"trips": "10", "where": "two"}), "cpus"); cpus != 2 {
			t.Errorf("two: %g CPUs", cpus)
		}
	}
	if direct := figure(newMicro(t, "ladder-io", map[string]string{"batches": "2"}), "direct"); direct != 0 && direct != 1 {
		t.Errorf("direct: %g", direct)
	}
}

// On a file system without direct I/O, such as ramfs, the answer is the same and the figure direct is 0.
func TestTheIOMicroworkloadWithoutDirectIO(t *testing.T) {
	require.Root(t)
	m := newMicro(t, "ladder-io", map[string]string{"batches": "20"})
	m.values["file"] = t.TempDir()
	out := m.must([]string{"/usr/bin/unshare", "--mount", "/bin/sh", "-euc", `mount -t ramfs none "$1"; exec "$2" run 20 "$1/file" "$3"`,
		"sh", "{file}", "{work}/io", "{scratch}/answer"})
	m.must(m.w.Check)
	if _, also, cause := m.w.Figures(ruler.Result{Stdout: out}); cause != nil || also["direct"] != 0 {
		t.Errorf("figures %v, %s; want direct 0", also, cause)
	}
}

// serving starts a workload's service on a free port.
func serving(t *testing.T, name string, given map[string]string) *micro {
	t.Helper()
	m := newMicro(t, name, given)
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, m.values["port"], _ = net.SplitHostPort(free.Addr().String())
	m.refused(append(m.w.Load.Ready[:3:3], "1"), "connecting: ") // nobody is there
	free.Close()
	service := m.command(m.w.Service.Command)
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		service.Process.Kill()
		service.Wait()
	})
	for end := time.Now().Add(20 * time.Second); m.command(m.w.Load.Ready).Run() != nil; {
		if time.Now().After(end) {
			t.Fatal("not ready")
		}
	}
	return m
}

func TestNetworkMicroworkload(t *testing.T) {
	for _, given := range []map[string]string{
		{"trips": "500"},
		{"trips": "3", "connections": "64", "bytes": "16"},
		{"trips": "100", "connections": "7", "bytes": "65536"},
	} {
		m := serving(t, "ladder-network", given)
		seconds, _, cause := m.w.Figures(ruler.Result{Stdout: m.must(m.w.Load.Command)})
		if cause != nil || seconds <= 0 {
			t.Errorf("%v: %g s, %s", given, seconds, cause)
		}
	}

	m := serving(t, "ladder-network", map[string]string{"trips": "10"})
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp4", "127.0.0.1:"+m.values["port"])
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		t.Cleanup(func() { c.Close() })
		return c
	}
	// The service answers a request that arrives byte by byte once it is complete. Until then it serves others.
	slow := dial()
	for i, b := range []byte{16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0} {
		if i == 5 || i == 12 {
			m.must(m.w.Load.Ready)
		}
		if _, err := slow.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 16)
	if _, err := io.ReadFull(slow, got); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if got[8+i] != byte(lcg(1)>>(8*i)) {
			t.Fatalf("answer % x", got)
		}
	}
	// An impossible length ends the connection, not the service.
	for _, length := range []byte{0, 8, 17} {
		c := dial()
		if _, err := c.Write([]byte{length, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(got); err == nil {
			t.Errorf("a length of %d: answered with %d bytes", length, n)
		}
	}
	m.must(m.w.Load.Command)
}

// The load fails if the service gives a wrong answer.
func TestNetworkMicroworkloadRefusesAWrongAnswer(t *testing.T) {
	m := newMicro(t, "ladder-network", map[string]string{"trips": "10", "connections": "1", "bytes": "16"})
	for want, answer := range map[string]func(request []byte) []byte{
		"wrong answer to request 0 in word 1":                     func(b []byte) []byte { return b }, // an echo
		"wrong answer: 24 bytes: must be 16":                      func(b []byte) []byte { return append([]byte{24, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...) },
		"wrong answer: its length is impossible":                  func(b []byte) []byte { return append([]byte{3}, b[1:]...) },
		"the service closed a connection: it must send an answer": func(b []byte) []byte { return b[:9] },
	} {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, m.values["port"], _ = net.SplitHostPort(l.Addr().String())
		done := make(chan error, 1)
		go func() {
			c, err := l.Accept()
			if err == nil {
				b := make([]byte, 16)
				if _, err = io.ReadFull(c, b); err == nil {
					_, err = c.Write(answer(b))
				}
				c.Close()
			}
			done <- err
		}()
		m.refused(m.w.Load.Command, want)
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.Close()
	}
}

// All of them use the same root.
func TestMicroworkloadsShareTheirRoot(t *testing.T) {
	of := func(name string) notebook.Metric {
		w, err := Find(workloads.FS, name, ".")
		if err != nil {
			t.Fatal(err)
		}
		if w.Image.Suite != "trixie" || len(w.Image.Packages) != 0 || w.Image.Reference != "" {
			t.Errorf("%s: %+v", name, w.Image)
		}
		return w.Primary()
	}
	for _, n := range Shipped(workloads.FS) {
		if strings.HasPrefix(n, "ladder-") || n == "pingpong" {
			if got, want := of(n), of("cpu"); got != want {
				t.Errorf("%s: metric %v, want %v", n, got, want)
			}
		}
	}
}
