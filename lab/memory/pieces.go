//go:build linux

package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/cilium/ebpf"
	"tare/lab/proc"
)

// piece is the part of each page that is read first. It shows for most pages that they are unlike all others.
const (
	pieceAt    = 1024 // its offset in a page, in bytes
	pieceBytes = 64
)

// pieceHash is the hash of a piece, as in bpf/pieces.c. 0 stands for none.
func pieceHash(seed uint64, piece []byte) uint64 {
	h := seed
	for i := 0; i < pieceBytes; i += 8 {
		h = (h ^ binary.LittleEndian.Uint64(piece[i:])) * 0x9fb21c651e98df25
		h ^= h >> 32
	}
	return max(1, h)
}

// frameReader reads pieces of the host's memory by the numbers of frames, with a program in the kernel. Reading them through the
// processes takes several times as long, because the kernel must find and hold each page again, with the process's own lock.
type frameReader struct {
	coll   *ebpf.Collection
	direct uint64 // where the kernel maps all of physical memory
	seed   uint64
}

// frameBlock is bpf/pieces.c's struct block.
type frameBlock struct {
	Direct, Seed, N uint64
	Of              [block]uint64
}

// openFrames loads the program for this many workers. The error says why this host does not support it.
func openFrames(seed uint64, workers int) (f *frameReader, err error) {
	if len(object) == 0 {
		return nil, errors.New("not on this architecture")
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil { // the object is embedded, so this is a defect of the program
		panic(err)
	}
	spec.Maps["blocks"].MaxEntries, spec.Maps["wholes"].MaxEntries = uint32(workers), uint32(workers)
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, err
	}
	f = &frameReader{coll: coll, seed: seed}
	if f.direct, err = f.place(); err != nil {
		coll.Close()
		return nil, err
	}
	return f, nil
}

// Close releases the program.
func (f *frameReader) Close() { f.coll.Close() }

// place finds where the kernel maps all of physical memory: there it finds the content of a page of this process.
func (f *frameReader) place() (direct uint64, err error) {
	page, err := proc.NewPage()
	if err != nil {
		return 0, err
	}
	defer page.Close()
	for i := 0; i < len(page.Content); i += 8 {
		binary.NativeEndian.PutUint64(page.Content[i:], rand.Uint64())
	}
	frame, err := page.Frame()
	if err != nil {
		return 0, err
	}
	want := pieceHash(f.seed, page.Content[pieceAt:])
	var task uint64
	if _, err := f.coll.Programs["place"].Run(&ebpf.RunOptions{Context: &task, ContextOut: &task}); err != nil {
		return 0, err
	}
	direct, err = proc.FindDirectMap(task, func(direct uint64) (bool, error) {
		b := frameBlock{Direct: direct, Seed: f.seed, N: 1}
		b.Of[0] = frame
		err := f.ask(0, &b)
		return b.Of[0] == want, err
	})
	if err == nil && direct == 0 {
		err = errors.New("the kernel's map of physical memory was not found")
	}
	return direct, err
}

func (f *frameReader) ask(worker uint32, b *frameBlock) error {
	if err := f.coll.Maps["blocks"].Put(worker, b); err != nil {
		return err
	}
	if _, err := f.coll.Programs["pieces"].Run(&ebpf.RunOptions{Context: &worker}); err != nil {
		return err
	}
	return f.coll.Maps["blocks"].Lookup(worker, b)
}

// frameBytes is bpf/pieces.c's struct whole.
type frameBytes struct {
	Direct, Frame, Read uint64
	Bytes               [4096]byte
}

// whole calls use with the bytes of a frame, unless the frame cannot be read.
func (f *frameReader) whole(worker int, frame uint64, use func(page []byte)) error {
	which, w := uint32(worker), frameBytes{Direct: f.direct, Frame: frame}
	err := f.coll.Maps["wholes"].Put(which, &w)
	if err == nil {
		_, err = f.coll.Programs["whole"].Run(&ebpf.RunOptions{Context: &which})
	}
	if err == nil {
		err = f.coll.Maps["wholes"].Lookup(which, &w)
	}
	if err != nil {
		return fmt.Errorf("reading a whole frame: %w", err)
	}
	if w.Read == 1 {
		use(w.Bytes[:])
	}
	return nil
}

// hash replaces the numbers of at most a block of frames by the hashes of their pieces; 0 for one that cannot be read.
func (f *frameReader) hash(worker int, of []uint64) error {
	b := frameBlock{Direct: f.direct, Seed: f.seed, N: uint64(len(of))}
	copy(b.Of[:], of)
	if err := f.ask(uint32(worker), &b); err != nil {
		return fmt.Errorf("pieces of frames: %w", err)
	}
	copy(of, b.Of[:])
	return nil
}
