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

// emptyProgram is the least that a process can do: a static program that exits. It lies in memory, or in the scratch
// folder where memory cannot be executed.
type emptyProgram struct {
	tried  bool
	memory *os.File
	name   string
}

// Machine code of exit(0), and the number of the machine in an ELF header.
var exits = map[string]struct {
	machine uint16
	code    []byte
}{
	"amd64": {62, []byte{
		0x31, 0xff, // xor edi, edi
		0xb8, 0x3c, 0, 0, 0, // mov eax, 60
		0x0f, 0x05, // syscall
	}},
	"arm64": {183, []byte{
		0x00, 0x00, 0x80, 0xd2, // mov x0, #0
		0xa8, 0x0b, 0x80, 0xd2, // mov x8, #93
		0x01, 0x00, 0x00, 0xd4, // svc #0
	}},
}

// emptyELF makes the file: an ELF header, one program header, the code.
func emptyELF(arch string) ([]byte, error) {
	x, ok := exits[arch]
	if !ok {
		return nil, fmt.Errorf("no empty program is known for %s; the ruler runs on amd64 and arm64", arch)
	}
	const base, header, programHeader = 0x400000, 64, 56
	size := uint64(header + programHeader + len(x.code))
	le := binary.LittleEndian
	b := []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00") // 64 bits, little-endian
	b = le.AppendUint16(b, 2)                                              // ET_EXEC
	b = le.AppendUint16(b, x.machine)
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
	b = le.AppendUint64(b, 0x10000) // alignment: the largest page there is
	return append(b, x.code...), nil
}

// inMemory gives the name to execute it by, if that can be done from memory.
func (e *emptyProgram) inMemory() string {
	if e.tried {
		return e.name
	}
	e.tried = true
	elf, err := emptyELF(runtime.GOARCH)
	if err != nil {
		return ""
	}
	fd, err := unix.MemfdCreate("empty", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if err != nil { // Linux before 6.3 does not know the second
		fd, err = unix.MemfdCreate("empty", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return ""
	}
	e.memory = os.NewFile(uintptr(fd), "empty")
	name := fmt.Sprintf("/proc/self/fd/%d", fd)
	if _, err := e.memory.Write(elf); err == nil && unix.Access(name, unix.X_OK) == nil {
		e.name = name
	}
	return e.name
}

// path gives the name to execute it by, in any case.
func (e *emptyProgram) path(scratch string) (string, error) {
	if name := e.inMemory(); name != "" {
		return name, nil
	}
	// No /proc, or no execution from memory. Made anew, since scratch is emptied.
	elf, err := emptyELF(runtime.GOARCH)
	if err != nil {
		return "", err
	}
	path := filepath.Join(scratch, ".tare-empty")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o755)
	if err != nil {
		return "", fmt.Errorf("the empty program has no place in the guest: %w", err)
	}
	_, err = f.Write(elf)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("writing the empty program: %w", err)
	}
	return path, nil
}

func (e *emptyProgram) close() {
	if e.memory != nil {
		e.memory.Close()
	}
	*e = emptyProgram{}
}
