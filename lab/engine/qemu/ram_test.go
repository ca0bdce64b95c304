//go:build linux

package qemu_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/engine/qemu"
	"tare/lab/memory"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/ruler/frames"
	"tare/notebook"
)

// marked reads the beginnings of all pages of a guest's memory, and gives the frames of those that hold marked, by the letter and the number in the mark.
func marked(t *testing.T, pid int, pieces []frames.Piece, token string) map[byte]map[uint32]uint64 {
	t.Helper()
	found := map[byte]map[uint32]uint64{'a': {}, 'f': {}}
	const size, together = 32, 1024
	heads := make([]byte, size*together)
	for _, p := range pieces {
		for at := uint64(0); at < p.N; at += together {
			n := min(together, p.N-at)
			var remote []unix.RemoteIovec
			for i := range n {
				remote = append(remote, unix.RemoteIovec{Base: uintptr(p.Address + (at+i)*frames.Size), Len: size})
			}
			got, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &heads[0], Len: size * n}}, remote, 0)
			if err != nil || uint64(got) != size*n {
				t.Fatalf("the guest's memory at %#x: %d bytes, %v", p.Address+at*frames.Size, got, err)
			}
			for i := range n {
				if head, ok := bytes.CutPrefix(heads[size*i:size*(i+1)], []byte(token)); ok && found[head[0]] != nil {
					found[head[0]][binary.LittleEndian.Uint32(head[1:])] = p.First + at + i
				}
			}
		}
	}
	return found
}

// A program in a guest that has exactly so many pages of its own and of a file is found with these, frame by frame, from the host.
func TestWhatAGuestsMemoryIsToIt(t *testing.T) {
	t.Parallel()
	const own, inFile = 2500, 1300
	built := goBuild(t, "./testdata/hold", ".")
	hold := filepath.Join(filepath.Dir(built), "hold")
	if err := os.Rename(built, hold); err != nil {
		t.Fatal(err)
	}
	d, s := lab(t, qemu.VM, program(t), 0, 0, hold)
	s.Instance.Cores = 1
	g, err := provision(t, d, s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	token, file := rand.Text()[:12], ruler.ScratchDir+"/held"
	ended := make(chan ruler.Result, 1)
	go func() {
		r, _, _ := g.Ruler().Run(ctx, ruler.Order{Argv: []string{"/bin/hold", token, "2500", file, "1300"}, Timeout: 2 * time.Minute, OutputLimit: 1000})
		ended <- r
	}()
	pieces, err := g.(engine.Machine).RAM(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if bytes, known, err := g.(engine.Machine).Mapped(ctx); err != nil || known && s.Accelerator == notebook.TCG {
		t.Errorf("of an emulated VM %d bytes are mapped, known: %v, %v", bytes, known, err)
	}
	pids, err := g.Processes()
	if err != nil {
		t.Fatal(err)
	}
	var found map[byte]map[uint32]uint64
	for found = marked(t, pids[0], pieces, token); len(found['a']) < own; found = marked(t, pids[0], pieces, token) {
		select {
		case r := <-ended:
			t.Fatalf("the program ended: exit code %d, %s%s", r.Exit, r.Stderr, r.Error)
		case <-time.After(100 * time.Millisecond): // nobody tells
		}
	}
	if len(found['a']) != own || len(found['f']) != inFile {
		t.Fatalf("found %d pages of its own and %d of its file, want %d and %d", len(found['a']), len(found['f']), own, inFile)
	}

	ram := &memory.RAM{PID: pids[0], Pieces: pieces}
	var asked []frames.Range
	total := uint64(0)
	for _, p := range pieces {
		asked, total = append(asked, p.Range), total+p.N
	}
	if int64(total)*frames.Size != s.Instance.Memory || len(pieces) != 1 {
		t.Errorf("the guest's memory is %+v, %d bytes", pieces, total*frames.Size)
	}
	if ram.Codes, ram.Kept, err = g.Ruler().Frames(ctx, asked); err != nil {
		t.Fatal(err)
	}
	count := map[frames.Kind]int{}
	for _, c := range ram.Codes {
		count[c.Kind()]++
	}
	t.Logf("to the guest: %v; %d of the kernel's are free and kept at hand", count, ram.Kept)
	if ram.Kept == 0 || ram.Kept > int64(count[frames.Kernel]) {
		t.Errorf("its CPUs keep %d free frames at hand, of %d that no flag tells of", ram.Kept, count[frames.Kernel])
	}
	for _, k := range []frames.Kind{frames.Free, frames.File, frames.Anonymous, frames.Slab, frames.Reserved} {
		if count[k] == 0 {
			t.Errorf("no frame of the guest is %v", k)
		}
	}
	for letter, want := range map[byte]frames.Kind{'a': frames.Anonymous, 'f': frames.File} {
		for i, frame := range found[letter] {
			if got := ram.Codes[frame].Kind(); got != want {
				t.Errorf("page %d of %q is frame %#x, %v to the guest, want %v", i, letter, frame, got, want)
			}
		}
	}
	if ram.Files, _, err = g.Ruler().Files(ctx); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ram.Files, func(f frames.Named) bool { return f.Name == file })
	if i < 0 {
		t.Fatalf("%s is not among %d files", file, len(ram.Files))
	}
	var its []uint64
	for _, r := range ram.Files[i].Frames {
		for n := range r.N {
			its = append(its, r.First+n)
		}
	}
	for page, frame := range found['f'] {
		if int(page) >= len(its) || its[page] != frame {
			t.Fatalf("page %d of the file is frame %#x, and the guest names %d frames otherwise", page, frame, len(its))
		}
	}
	if len(its) != inFile || !slices.ContainsFunc(ram.Files, func(f frames.Named) bool { return f.Name == "/bin/hold" }) {
		t.Errorf("the guest names %d frames of %s, want %d; /bin/hold is to be among its %d files", len(its), file, inFile, len(ram.Files))
	}

	// The account has these frames, and with all others everything that the process has.
	snapshot, err := memory.Scan(ctx, pids, memory.Options{Contents: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	marks := map[uint64]bool{}
	for _, of := range found {
		for _, frame := range of {
			marks[frame] = true
		}
	}
	only := *ram
	only.Codes = slices.Clone(ram.Codes)
	for i := range only.Codes {
		if !marks[uint64(i)] {
			only.Codes[i] = frames.Code(frames.Reserved)
		}
	}
	all := snapshot.Account([]memory.Guest{{Name: "guest", Kind: notebook.MemoryVM, PIDs: pids, RAM: &only}})
	sum := all[0].RAM.Emulator.RSS
	for _, k := range all[0].RAM.Kinds {
		sum += k.RSS
		switch want := map[string]int64{notebook.FramesAnonymous: own, notebook.FramesFile: inFile}[k.Name] * frames.Size; {
		case want > 0 && (k.RSS != want || k.Own != want || k.Guest != want || k.PSS != want):
			t.Errorf("%s: %+v, want %d", k.Name, k, want)
		case want == 0 && k.Name != notebook.FramesReserved:
			t.Errorf("%s: %+v, want none", k.Name, k)
		}
	}
	rollup, err := proc.RollupOf(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	if sum != all[0].RSS || all[0].RAM.Emulator.RSS < 1<<20 || sum < rollup.RSS*99/100 || sum > rollup.RSS*101/100 {
		t.Errorf("RAM and emulator have %d bytes, the process %d, of %d by the kernel", sum, all[0].RSS, rollup.RSS)
	}
	t.Logf("RSS %d MiB, the emulator's %d", sum>>20, all[0].RAM.Emulator.RSS>>20)
}
