//go:build linux

package ruler

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// tiny is a static program that consists only of code. It is in memory, or in the scratch folder if memory cannot be executed.
type tiny struct {
	name   string
	code   []byte
	tried  bool
	memory *os.File // nil: it cannot be in memory
	path   string   // path to execute it by, if it can be executed from memory
}

// machines are the machines' numbers in an ELF header.
var machines = map[string]uint16{"amd64": 62, "arm64": 183}

// exits is the code of the smallest possible process: exit(0).
var exits = map[string][]byte{
	"amd64": {
		0x31, 0xff, // xor edi, edi
		0xb8, 0x3c, 0, 0, 0, // mov eax, 60
		0x0f, 0x05, // syscall
	},
	"arm64": {
		0x00, 0x00, 0x80, 0xd2, // mov x0, #0
		0xa8, 0x0b, 0x80, 0xd2, // mov x8, #93
		0x01, 0x00, 0x00, 0xd4, // svc #0
	},
}

// makeELF makes the file: an ELF header, one program header, the code.
func makeELF(arch string, code []byte) ([]byte, error) {
	machine, ok := machines[arch]
	if !ok {
		return nil, fmt.Errorf("the ruler runs only on amd64 and arm64, not on %s", arch)
	}
	const base, header, programHeader = 0x400000, 64, 56
	size := uint64(header + programHeader + len(code))
	le := binary.LittleEndian
	b := []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00") // 64 bits, little-endian
	b = le.AppendUint16(b, 2)                                              // ET_EXEC
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+header+programHeader) // entry
	b = le.AppendUint64(b, header)                    // program headers
	b = le.AppendUint64(b, 0)                         // no sections
	b = le.AppendUint32(b, 0)
	b = le.AppendUint16(b, header)
	b = le.AppendUint16(b, programHeader)
	b = le.AppendUint16(b, 1)
	b = append(b, make([]byte, 6)...)
	b = le.AppendUint32(b, 1) // PT_LOAD
	b = le.AppendUint32(b, 5) // read, execute
	b = le.AppendUint64(b, 0)
	b = le.AppendUint64(b, base)
	b = le.AppendUint64(b, base)
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, 0x10000) // alignment: the largest page size
	return append(b, code...), nil
}

// inMemory returns the path to execute it by; "" if it cannot be executed from memory.
func (t *tiny) inMemory() string {
	if t.tried {
		return t.path
	}
	t.tried = true
	elf, err := makeELF(runtime.GOARCH, t.code)
	if err != nil {
		return ""
	}
	fd, err := unix.MemfdCreate(t.name, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if err != nil { // Linux before 6.3 does not know the second flag
		fd, err = unix.MemfdCreate(t.name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return ""
	}
	t.memory = os.NewFile(uintptr(fd), t.name)
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	if _, err := t.memory.Write(elf); err == nil && unix.Access(path, unix.X_OK) == nil {
		t.path = path
	}
	return t.path
}

// file writes it into the scratch folder and returns its path, for guests without /proc or without execution from memory. It writes
// the file each time, because scratch is emptied.
func (t *tiny) file(scratch string) (string, error) {
	elf, err := makeELF(runtime.GOARCH, t.code)
	if err != nil {
		return "", err
	}
	path := filepath.Join(scratch, ".tare-"+t.name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o755)
	if err != nil {
		return "", fmt.Errorf("no place for the program %s in the guest: %w", t.name, err)
	}
	_, err = f.Write(elf)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("writing the program %s: %w", t.name, err)
	}
	return path, nil
}
