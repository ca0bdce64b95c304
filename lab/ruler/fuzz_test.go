//go:build linux

package ruler

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/lab/ruler/frames"
	"tare/notebook"
)

// rawFrame makes a frame's bytes without a check.
func rawFrame(kind byte, payload string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	return append(append(b, kind), payload...)
}

const goodHello = `{"version":2,"pid":1,"kernel":"6.1","cpus":[0,1],"memory":1073741824}`

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// guestScripts are what a guest may send, good and bad, from its first byte on.
var guestScripts = [][]byte{
	nil,
	magic,
	[]byte("Booting...\r\n[ 0.0] Linux\r\n"),
	cat([]byte("noise \xf5tar noise"), magic, rawFrame(kindHello, goodHello), rawFrame(kindPong, `{"now":1}`)),
	cat(magic, rawFrame(kindHello, goodHello), rawFrame(kindPong, `{"now":1}`),
		rawFrame(kindReady, ""), rawFrame(kindEnded, `{"lead":1,"late":1}`), rawFrame(kindDone, `{"elapsed":1,"exit":0,"user_s":0,"system_s":0,"max_rss":1,"minflt":0,"majflt":0,"vcsw":0,"ivcsw":0}`),
		rawFrame(kindReady, ""), rawFrame(kindEnded, `{"lead":1,"late":1}`), rawFrame(kindDone, `{"elapsed":1,"took":[1,2,3]}`)),
	cat(magic, rawFrame(kindHello, goodHello), rawFrame(kindPong, `{"now":1}`),
		rawFrame(kindReady, ""), rawFrame(kindEnded, `{"lead":1,"late":1}`), rawFrame(kindDone, `{"elapsed":1,"probes":{"looked":["scheduler"],"wall":{"user":1e-9},"figures":{"switches":1}}}`)),
	cat(magic, rawFrame(kindHello, `{"version":2}`)),
	cat(magic, rawFrame(kindHello, "\xff")),
	cat(magic, []byte{0xff, 0xff, 0xff, 0xff, kindHello}),
	cat(magic, []byte{0, 0, 0, 9, 'Z'}),
	cat(magic, rawFrame(kindHello, goodHello), rawFrame(kindDone, "{}")),
	cat(magic, rawFrame(kindHello, goodHello), rawFrame(kindPong, `{"now":1}`), rawFrame(kindDone, `{"elapsed":-5}`)),
	cat(magic, rawFrame(kindHello, goodHello), rawFrame(kindPong, `{"now":1}`), rawFrame(kindReady, ""), rawFrame(kindEnded, `{"lead":1,"late":9223372036854775807}`)),
	cat(magic, rawFrame(kindHello, goodHello), rawFrame(kindPong, `{"now":1}`), rawFrame(kindReady, ""), rawFrame(kindReady, "")),
	cat(magic, rawFrame(kindHello, goodHello), rawFrame(kindPong, `{"now":1}`), rawFrame(kindReady, "")[:3]),
}

// FuzzFrame: whatever the bytes, the decoder ends, keeps to its bounds, and takes what it gave in the form it gave.
func FuzzFrame(f *testing.F) {
	for _, s := range guestScripts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := decoder{r: bytes.NewReader(data)}
		if err := d.sync(); err != nil {
			var protocol *ProtocolError
			if !errors.Is(err, io.EOF) && !errors.As(err, &protocol) {
				t.Fatalf("sync: %v", err)
			}
			return
		}
		rest := data[bytes.Index(data, magic)+len(magic):]
		for {
			fr, err := d.next()
			if err != nil {
				var protocol *ProtocolError
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &protocol) {
					t.Fatalf("next: %v", err)
				}
				return
			}
			again := rawFrame(fr.kind, string(fr.payload))
			if !bytes.HasPrefix(rest, again) {
				t.Fatalf("frame %q is not what came, %q", again, rest)
			}
			rest = rest[len(again):]
			var h Hello
			var r Result
			if fr.decode(&h) == nil {
				h.check()
			}
			if fr.decode(&r) == nil {
				r.check(&Order{}, time.Second)
			}
		}
	})
}

// FuzzClient: whatever a guest sends, each method of the client ends soon, and with an error of a known kind.
func FuzzClient(f *testing.F) {
	for _, s := range guestScripts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		host, guest := net.Pipe()
		var both sync.WaitGroup
		both.Go(func() { io.Copy(io.Discard, guest) })
		both.Go(func() {
			guest.Write(data) // fails when the client has had enough
			guest.Close()
		})
		defer both.Wait()
		defer guest.Close()

		// Far longer than needed and far shorter than any of the client's own limits.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check := func(what string, err error) {
			if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrProtocol) {
				t.Errorf("%s: %v", what, err)
			}
		}
		c, err := Connect(ctx, host)
		if err != nil {
			check("connect", err)
			return
		}
		defer c.Close()
		if err := c.hello.check(); err != nil {
			t.Errorf("took the hello %+v: %v", c.hello, err)
		}
		o := Order{Argv: []string{"true"}, Timeout: time.Second, OutputLimit: 100, Tracers: []string{notebook.TracerScheduler}, Bounds: &bounds{}}
		r, d, err := c.Run(ctx, o)
		check("run", err)
		if err == nil && (d < 0 || len(r.Stdout) > 100 || r.Elapsed < 0 || r.Exit < 0) {
			t.Errorf("took %+v, %v", r, d)
		}
		ds, err := c.Cost(ctx, 3)
		if r := (&ProtocolError{}); err != nil && !errors.As(err, &r) && !errors.Is(err, ErrGone) && c.err != nil {
			t.Errorf("cost: %v", err)
		}
		if err == nil && len(ds) != 3 {
			t.Errorf("%d costs", len(ds))
		}
		_, err = c.Ping(ctx)
		check("ping", err)
	})
}

// fakeExecutor answers without starting anything.
type fakeExecutor struct{ finished bool }

func (*fakeExecutor) hello() (Hello, error) {
	return Hello{Version: ProtocolVersion, PID: 1, CPUs: []int{0}, Memory: 1}, nil
}

func (*fakeExecutor) run(o *Order, c *control, ready func() bool, ended func(lead, late time.Duration)) Result {
	if o.check() != nil {
		panic("an order that breaks the limits came through")
	}
	if !ready() {
		return Result{Error: c.why()}
	}
	ended(time.Microsecond, time.Microsecond)
	if o.Times > 0 {
		return Result{Took: make([]time.Duration, o.Times)}
	}
	return Result{Elapsed: time.Millisecond, Stdout: []byte(o.Argv[0])}
}

func (*fakeExecutor) look(l *lookNote, say func(*seenNote) error) error {
	if l.check() != nil {
		panic("a look that breaks the limits came through")
	}
	if l.Files {
		return say(&seenNote{Files: []frames.Named{{Name: "/bin/sh", Frames: []frames.Range{{First: 3, N: 2}}}}, Out: "a folder"})
	}
	for _, r := range l.Frames {
		codes := make([]frames.Code, min(r.N, 100))
		if err := say(&seenNote{Codes: frames.Pack(nil, codes)}); err != nil {
			return err
		}
	}
	return say(&seenNote{Kept: 42})
}

func (f *fakeExecutor) finish() error { f.finished = true; return nil }

// FuzzServe: whatever the host's end sends, the guest's end ends when the stream does, having tidied up, and all
// that it sent are frames.
func FuzzServe(f *testing.F) {
	order := `{"argv":["true"],"timeout":1000000000,"output_limit":10}`
	for _, s := range [][]byte{
		nil,
		magic,
		cat([]byte("login: "), magic, rawFrame(kindPing, "")),
		cat(magic, rawFrame(kindRun, order), rawFrame(kindGo, "")),
		cat(magic, rawFrame(kindRun, order), rawFrame(kindCancel, ""), rawFrame(kindGo, "")),
		cat(magic, rawFrame(kindRun, order), rawFrame(kindRun, order)),
		cat(magic, rawFrame(kindGo, ""), rawFrame(kindCancel, ""), rawFrame(kindRun, `{"times":3,"timeout":1000000000}`)),
		cat(magic, rawFrame(kindRun, `{"times":-3,"timeout":1000000000}`)),
		cat(magic, rawFrame(kindRun, `{"argv":[""]}`)),
		cat(magic, rawFrame(kindLook, `{"frames":[{"first":0,"n":5}]}`), rawFrame(kindLook, `{"files":true}`)),
		cat(magic, rawFrame(kindLook, `{"frames":[{"first":0,"n":0}]}`)),
		cat(magic, rawFrame(kindHello, goodHello)),
		cat(magic, []byte{0xff, 0xff, 0xff, 0xff, kindRun}),
		bytes.Repeat([]byte{'x'}, maxGarbage/64),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		host, guest := net.Pipe()
		said := make(chan []byte, 1)
		go func() {
			b, _ := io.ReadAll(host) // ends when the guest closes its end
			said <- b
		}()
		go func() {
			host.Write(data)
			host.Close()
		}()
		ex := &fakeExecutor{}
		ended := make(chan error, 1)
		go func() { ended <- serve(guest, ex) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("the guest's end does not end")
		}
		b := <-said
		if !bytes.HasPrefix(b, magic) {
			if len(data) == 0 {
				return // the host was gone before the hello
			}
			t.Fatalf("said %q first", b)
		}
		if !ex.finished {
			t.Error("not tidied up")
		}
		d := decoder{r: bytes.NewReader(b[len(magic):])}
		for {
			if _, err := d.next(); err != nil {
				var protocol *ProtocolError
				if errors.As(err, &protocol) {
					t.Errorf("sent %v", err)
				}
				return
			}
		}
	})
}

// The two ends talk to each other over a stream with garbage before it.
func TestEndsMeet(t *testing.T) {
	host, guest := net.Pipe()
	served := make(chan error, 1)
	go func() {
		guest.Write([]byte("SeaBIOS\r\n\xf5tare\xf5"))
		served <- serve(guest, &fakeExecutor{})
	}()
	c, err := Connect(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	o := Order{Argv: []string{"word"}, Timeout: time.Second, OutputLimit: 10}
	if r, _, err := c.Run(t.Context(), o); err != nil || string(r.Stdout) != "word" {
		t.Errorf("%q, %v", r.Stdout, err)
	}
	o.OutputLimit = 3 // the fake sends more than that
	if _, _, err := c.Run(t.Context(), o); !errors.Is(err, ErrProtocol) {
		t.Errorf("more output than was asked for: %v", err)
	}
	c.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A guest that says nothing is waited for as long as the context says.
func TestSilence(t *testing.T) {
	host, guest := net.Pipe()
	defer guest.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := Connect(ctx, host); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// A guest that stops answering is given up when its time and the grace are over, and stays given up.
func TestNoAnswer(t *testing.T) {
	host, guest := net.Pipe()
	defer guest.Close()
	c := newClient(host)
	if _, err := c.answer(t.Context(), time.Now().Add(20*time.Millisecond), kindDone); !errors.Is(err, ErrSilent) {
		t.Errorf("%v", err)
	}
	if _, err := c.Ping(t.Context()); !errors.Is(err, ErrSilent) {
		t.Errorf("afterwards: %v", err)
	}
}

// Noise without end is given up.
func TestNoise(t *testing.T) {
	host, guest := net.Pipe()
	defer guest.Close()
	go func() {
		line := bytes.Repeat([]byte("systemd[1]: Started.\r\n"), 100)
		for {
			if _, err := guest.Write(line); err != nil {
				return
			}
		}
	}()
	if _, err := Connect(t.Context(), host); !errors.Is(err, ErrProtocol) {
		t.Errorf("%v", err)
	}
}

// flood is a guest that says hello and then repeats one thing without end, whatever it is asked.
type flood struct {
	net.Conn
	read atomic.Int64 // bytes that the host took
}

func (f *flood) Read(p []byte) (n int, err error) {
	n, err = f.Conn.Read(p)
	f.read.Add(int64(n))
	return n, err
}

// Whatever a guest repeats without end, the host takes a few MiB of it, keeps no more than one frame, and gives the guest up.
func TestAFloodOfFrames(t *testing.T) {
	whole := func(kind byte, size int) []byte {
		var b bytes.Buffer
		if err := writeFrame(&b, kind, strings.Repeat("x", size)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, repeated := range map[string][]byte{
		"done": whole(kindDone, 1<<20), "seen": whole(kindSeen, 1<<20), "hello": whole(kindHello, 10), "pong": whole(kindPong, 3<<20),
		"a length that is too large": {0xff, 0xff, 0xff, 0xff, kindPong}, "an unknown kind": {0, 0, 0, 0, 'Z'},
		"a frame that does not end": append([]byte{0, 0x3f, 0xff, 0xff, kindPong}, make([]byte, 1<<20)...),
	} {
		t.Run(name, func(t *testing.T) {
			host, guest := net.Pipe()
			defer guest.Close()
			go func() {
				if _, err := guest.Write(magic); err != nil {
					return
				}
				if err := func() error { _, err := guest.Write(rawFrame(kindHello, goodHello)); return err }(); err != nil {
					return
				}
				if _, err := io.ReadFull(guest, make([]byte, len(magic))); err != nil {
					return
				}
				go io.Copy(io.Discard, guest) // what it is asked
				for {
					if _, err := guest.Write(repeated); err != nil {
						return
					}
				}
			}()
			taken := &flood{Conn: host}
			c, err := Connect(t.Context(), taken)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Ping(t.Context()); !errors.Is(err, ErrProtocol) {
				t.Errorf("%v", err)
			}
			if n := taken.read.Load(); n > 2*maxFrame || cap(c.dec.buf) > 4*maxFrame {
				t.Errorf("it took %d bytes, and keeps %d", n, cap(c.dec.buf))
			}
		})
	}
}

// FuzzLoader: whatever the file, the loader is found as debug/elf finds it, or the file is refused.
func FuzzLoader(f *testing.F) {
	for _, path := range []string{"/proc/self/exe", "/bin/sh"} {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 4096)])
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	var small bytes.Buffer
	for _, part := range []any{
		elf.Header32{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: 1, Phoff: 52, Ehsize: 52, Phentsize: 32, Phnum: 1,
		},
		elf.Prog32{Type: uint32(elf.PT_INTERP), Off: 84, Filesz: 4}, []byte("/ld\x00"),
	} {
		if err := binary.Write(&small, binary.LittleEndian, part); err != nil {
			f.Fatal(err)
		}
	}
	if got, err := loader(bytes.NewReader(small.Bytes())); got != "/ld" {
		f.Fatalf("%q, %v", got, err)
	}
	f.Add(small.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := loader(bytes.NewReader(data))
		if len(got) > maxLoader {
			t.Fatalf("a path of %d bytes", len(got))
		}
		if want, ok := theirs(data); ok && (got != want || err != nil) {
			t.Errorf("%q, %v; debug/elf has %q", got, err, want)
		}
	})
}

// theirs is what debug/elf finds; not ok where it reads no such file, or finds a path that is cut off or longer than ours may be.
func theirs(data []byte) (path string, ok bool) {
	e, err := elf.NewFile(bytes.NewReader(data))
	if err != nil || e.ByteOrder != binary.LittleEndian {
		return "", false
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			return strings.TrimRight(string(b), "\x00"), err == nil && uint64(len(b)) == p.Filesz && len(b) <= maxLoader
		}
	}
	return "", true
}
