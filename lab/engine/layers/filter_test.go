//go:build linux

package layers

import (
	"runtime"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"tare/lab/engine/oci/config"
)

// run does what the kernel does with a filter: the four kinds of instructions that there are here.
func run(t *testing.T, p []unix.SockFilter, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := map[uint32]uint32{atNumber: nr, atArchitecture: arch}
	for i, a := range args {
		at := uint32(atArguments + 8*i)
		data[at], data[at+4] = uint32(a), uint32(a>>32)
	}
	var acc uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		yes := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = data[in.K]
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = acc == in.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			yes = acc > in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			yes = acc >= in.K
		default:
			t.Fatalf("instruction %d: code %#x", pc, in.Code)
		}
		if yes {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the filter ends without an answer")
	return 0
}

// holds says whether a list's condition is met, as the OCI specification has it.
func holds(a specs.LinuxSeccompArg, v uint64) bool {
	switch a.Op {
	case specs.OpEqualTo:
		return v == a.Value
	case specs.OpLessThan:
		return v < a.Value
	case specs.OpGreaterThan:
		return v > a.Value
	}
	return v&a.Value == a.ValueTwo
}

func here(t *testing.T) *arch.Info {
	t.Helper()
	m, err := arch.GetInfo("")
	if err != nil {
		t.Skipf("needs a machine whose system calls are known, not %s", runtime.GOARCH)
	}
	return m
}

func TestComparisons(t *testing.T) {
	machine := here(t)
	for _, op := range []specs.LinuxSeccompOperator{
		specs.OpEqualTo, specs.OpLessThan, specs.OpGreaterThan, specs.OpMaskedEqual,
	} {
		for _, want := range []uint64{0, 5, 1<<32 - 1, 1 << 32, 3<<32 | 7} {
			a := specs.LinuxSeccompArg{Index: 1, Value: want, ValueTwo: want & 0x3_0000_0005, Op: op}
			p, err := assemble(&specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
				{Names: []string{"read"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{a}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []uint64{0, 4, 5, 6, 7, 8, 1<<32 - 1, 1 << 32, 1<<32 + 5, 2<<32 | 9, 3<<32 | 5, 3<<32 | 7, 3<<32 | 8, 1 << 63} {
				got := run(t, p, uint32(machine.ID), unix.SYS_READ, 99, v) == unix.SECCOMP_RET_ALLOW
				if want := holds(a, v); got != want {
					t.Errorf("%s %#x %#x of %#x: %t, want %t", op, a.Value, a.ValueTwo, v, got, want)
				}
			}
		}
	}
}

// TestDocker looks what the kernel would do with every call of Docker's list, and with some that are not in it.
func TestDocker(t *testing.T) {
	machine := here(t)
	list, err := config.Seccomp()
	if err != nil {
		t.Fatal(err)
	}
	p, err := assemble(list)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d instructions", len(p))
	refuses := unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	known := map[uint32]bool{}
	for _, c := range list.Syscalls {
		for _, name := range c.Names {
			number, ok := machine.SyscallNames[name]
			if !ok {
				continue
			}
			n := uint32(number)
			known[n] = true
			if len(c.Args) > 0 {
				continue
			}
			want, err := action(c.Action, c.ErrnoRet)
			if err != nil {
				t.Fatal(err)
			}
			if got := run(t, p, uint32(machine.ID), n); got != want {
				t.Errorf("%s: %#x, want %#x", name, got, want)
			}
			if got := run(t, p, uint32(machine.ID)+1, n); got != refuses {
				t.Errorf("%s of another architecture: %#x, want %#x", name, got, refuses)
			}
		}
	}
	if len(known) < 250 {
		t.Errorf("only %d calls of the list are known: is the table for %s whole?", len(known), machine.Name)
	}
	for n := range uint32(600) {
		if !known[n] && run(t, p, uint32(machine.ID), n) != refuses {
			t.Errorf("call %d is not in the list, and not refused", n)
		}
	}
	for _, c := range []struct {
		name string
		arg  uint64
		want uint32
	}{
		{"clone", uint64(unix.SIGCHLD), unix.SECCOMP_RET_ALLOW}, {"clone", unix.CLONE_NEWUSER, refuses},
		{"clone3", 0, unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{"socket", unix.AF_INET, unix.SECCOMP_RET_ALLOW}, {"socket", unix.AF_VSOCK, refuses},
		{"personality", 0xffffffff, unix.SECCOMP_RET_ALLOW}, {"personality", 1 << 32, refuses},
		{"unshare", 0, refuses}, {"mount", 0, refuses}, {"chroot", 0, unix.SECCOMP_RET_ALLOW},
	} {
		number, ok := machine.SyscallNames[c.name]
		if !ok {
			t.Fatalf("%s is not known", c.name)
		}
		if got := run(t, p, uint32(machine.ID), uint32(number), c.arg); got != c.want {
			t.Errorf("%s of %#x: %#x, want %#x", c.name, c.arg, got, c.want)
		}
	}
}

func TestCapabilities(t *testing.T) {
	if _, err := capabilities(); err != nil {
		t.Error(err)
	}
}
