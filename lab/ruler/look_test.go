//go:build linux

package ruler

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/ruler/frames"
)

// busy carries out an order until it is stopped.
type busy struct{ fakeExecutor }

func (*busy) run(o *Order, c *control, ready func() bool, ended func(lead, late time.Duration)) Result {
	if ready() {
		<-c.stopped
	}
	return Result{Error: c.why()}
}

// orderTo has the guest at the other end carry out an order that does not end by itself, and gives what ends it and waits.
func orderTo(t *testing.T, c *Client) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(Begun), make(chan error, 1)
	go func() {
		_, _, err := c.Run(ctx, Order{Argv: []string{"stay"}, Timeout: time.Minute, Bounds: begun})
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatalf("the order did not begin: %v", err)
	}
	for { // the word to go is sent after that
		c.looking.mu.Lock()
		running := c.looking.running
		c.looking.mu.Unlock()
		if running {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return func() error { cancel(); return <-ended }
}

// While an order is in progress the guest says what its memory is, and the order goes on.
func TestALookBesideAnOrder(t *testing.T) {
	host, guest := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(guest, &busy{}) }()
	c, err := Connect(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	if codes, kept, err := c.Frames(t.Context(), []frames.Range{{First: 0, N: 90}}); err != nil || len(codes) != 90 || kept != 42 {
		t.Errorf("without an order: %d codes, %d kept, %v", len(codes), kept, err)
	}
	if files, out, err := c.Files(t.Context()); err != nil || out != "a folder" || len(files) != 1 {
		t.Errorf("without an order: %+v, %q left out, %v", files, out, err)
	}
	end := orderTo(t, c)
	for range 2 {
		codes, kept, err := c.Frames(t.Context(), []frames.Range{{First: 0, N: 100}, {First: 1 << 20, N: 7}})
		if err != nil || len(codes) != 107 || kept != 42 {
			t.Errorf("%d codes, %v; want 107", len(codes), err)
		}
		files, out, err := c.Files(t.Context())
		if err != nil || out != "a folder" || len(files) != 1 || files[0].Name != "/bin/sh" {
			t.Errorf("%+v, %q left out, %v", files, out, err)
		}
	}
	if _, _, err := c.Frames(t.Context(), []frames.Range{{N: frames.Most}, {N: frames.Most}}); err == nil {
		t.Error("more frames than any guest has were asked for")
	}
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Errorf("the order: %v", err)
	}
	if _, err := c.Ping(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	c.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A guest that says too much of its memory, too little, or nothing, is found out.
func TestALookAtAGuestThatLies(t *testing.T) {
	for name, c := range map[string]struct{ says, want string }{
		"too many frames":       {`{"codes":"AQU=","last":true}`, "more than the requested 4 frames"},
		"too few":               {`{"codes":"AQI=","last":true}`, "2 frames of 4"},
		"no code":               {`{"codes":"DwQ=","last":true}`, "not the code of a frame"},
		"more kept than it has": {`{"codes":"AQQ=","kept":5,"last":true}`, "5 frames kept at hand, of 4"},
		"less than none":        {`{"codes":"AQQ=","kept":-1,"last":true}`, "-1 frames kept"},
		"files":                 {`{"files":[],"last":true}`, "files, which were not requested"},
		"no JSON":               {`{"codes":`, "JSON"},
		"an error and more":     {`{"error":"no"}`, "more to come"},
		"an error":              {`{"error":"no kpageflags","last":true}`, "the guest cannot tell what its memory contains: no kpageflags"},
		"more after the last":   {`{"codes":"AQQ=","last":true}` + "\x00", "more after its end"},
		"a field of its own":    {`{"codes":"AQQ=","last":true,"root":1}`, "unknown field"},
		"nothing, until we end": {"", "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			host, guest := net.Pipe()
			defer guest.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// A pipe has no room, and a ruler's stream has: answers wait here while the guest reads on. Otherwise a look that comes before the
			// word to go would block both ends.
			answers := make(chan []byte, 16)
			go func() {
				for a := range answers {
					guest.Write(a)
				}
			}()
			go func() {
				defer close(answers)
				answers <- cat(magic, rawFrame(kindHello, goodHello))
				d := decoder{r: guest}
				if d.sync() != nil {
					return
				}
				for {
					f, err := d.next()
					switch {
					case err != nil:
						return
					case f.kind == kindPing:
						answers <- rawFrame(kindPong, `{"now":1}`)
					case f.kind == kindRun:
						answers <- rawFrame(kindReady, "")
					case f.kind == kindCancel:
						answers <- rawFrame(kindDone, `{"error":"cancelled"}`)
					case f.kind == kindLook && c.says == "":
						cancel()
					case f.kind == kindLook:
						answers <- rawFrame(kindSeen, c.says)
					}
				}
			}()
			client, err := Connect(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			end := orderTo(t, client)
			codes, _, err := client.Frames(ctx, []frames.Range{{First: 9, N: 4}})
			if err == nil || !strings.Contains(err.Error(), c.want) || codes != nil {
				t.Errorf("%d codes, %v; want %q", len(codes), err, c.want)
			}
			if c.says == "" {
				if _, _, err := client.Frames(t.Context(), []frames.Range{{First: 9, N: 4}}); err == nil || !strings.Contains(err.Error(), "another look is still running") {
					t.Errorf("a look after one that was given up: %v", err)
				}
			}
			end()
		})
	}
	t.Run("a part that was not requested", func(t *testing.T) {
		host, guest := net.Pipe()
		go func() {
			guest.Write(cat(magic, rawFrame(kindHello, goodHello), rawFrame(kindSeen, `{"last":true}`)))
		}()
		go func() {
			b := make([]byte, 100)
			for {
				if _, err := guest.Read(b); err != nil {
					return
				}
			}
		}()
		c, err := Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Ping(t.Context()); !errors.Is(err, ErrProtocol) {
			t.Errorf("%v", err)
		}
	})
}

// After the end of the kernel's list of frames there is no memory, and parts come in the requested order.
func TestCodesOfAListOfFrames(t *testing.T) {
	list := make([]byte, 8*20000)
	for i := range 20000 {
		binary.NativeEndian.PutUint64(list[8*i:], 1<<10) // free
	}
	binary.NativeEndian.PutUint64(list[8*12345:], 1<<12|1<<3) // a process's
	var codes []frames.Code
	err := unpacked(bytes.NewReader(list), []frames.Range{{First: 12340, N: 10000}, {First: 0, N: 1}}, &codes)
	if err != nil || len(codes) != 10001 {
		t.Fatalf("%d codes, %v", len(codes), err)
	}
	for i, c := range codes {
		want := frames.Free
		switch {
		case i == 5:
			want = frames.Anonymous
		case i >= 20000-12340 && i < 10000:
			want = frames.Absent
		}
		if c.Kind() != want {
			t.Fatalf("frame %d of the answer: %v, want %v", i, c.Kind(), want)
		}
	}
}

func unpacked(list *bytes.Reader, of []frames.Range, to *[]frames.Code) error {
	return codes(list, of, func(n *seenNote) (err error) {
		*to, err = frames.Unpack(*to, n.Codes, frames.Most)
		return err
	})
}

func TestWhatCPUsKeepAtHand(t *testing.T) {
	const zones = "Node 0, zone    DMA32\n  pages free     31\n  pagesets\n    cpu: 0\n              count:    39\n              high:     52\n    cpu: 1\n" +
		"              count:    3\n  vm stats threshold: 6\nNode 0, zone   Normal\n    cpu: 0\n              count:    x\n              count:    -7\n"
	if n := kept(zones); n != 42 {
		t.Errorf("%d frames, want 42", n)
	}
}

// Files are found with exactly those pages that are in memory, each file once whatever its names, and none of its pages is read for that.
func TestFilesAreFoundWithTheirFrames(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	write := func(name string, pages int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, bytes.Repeat([]byte(name[:1]), pages*frames.Size-100), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("seven", 7)
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	three := write("a/b/three", 3)
	if err := os.Link(three, filepath.Join(dir, "also three")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(three, filepath.Join(dir, "no file")); err != nil {
		t.Fatal(err)
	}
	hole, err := os.Create(filepath.Join(dir, "hole"))
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	if err := hole.Truncate(1 << 30); err != nil {
		t.Fatal(err)
	}
	proc, err := os.OpenRoot("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	found := map[string]uint64{}
	f, err := newFinder(proc, func(n *seenNote) error {
		for i := range n.Files {
			pages, err := n.Files[i].Check()
			if err != nil {
				return err
			}
			found[strings.TrimPrefix(n.Files[i].Name, dir)] = pages
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.pagemap.Close()
	if err := f.folder(dir, 0); err != nil || f.failed > 0 {
		t.Fatal(err, f.failed, f.why)
	}
	if err := f.say(&f.part); err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found["/seven"] != 7 || found["/a/b/three"]+found["/also three"] != 3 {
		t.Errorf("found %v, want seven pages, three, and none of the hole", found)
	}
	all := mapsOf(t, f, filepath.Join(dir, "seven"))
	if !slices.ContainsFunc(all, func(r frames.Range) bool { return r.First > 0 }) {
		t.Errorf("the frames of seven are %v", all)
	}
	f.until = time.Now()
	if err := f.folder(dir, 0); !errors.Is(err, errEnough) {
		t.Errorf("when its time is over: %v", err)
	}
}

func mapsOf(t *testing.T, f *finder, path string) []frames.Range {
	t.Helper()
	f.part = seenNote{}
	if err := f.open(path, path); err != nil || len(f.part.Files) != 1 {
		t.Fatal(err, f.part.Files, f.why)
	}
	return f.part.Files[0].Frames
}
