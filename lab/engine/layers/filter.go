//go:build linux

package layers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, in bytes (linux/seccomp.h), on the little-endian machines that Tare runs on.
const (
	atNumber       = 0
	atArchitecture = 4
	atArguments    = 16
)

// assemble compiles a list of system calls to the program that the kernel runs before each call (seccomp(2)), in the way of the
// runtimes' libseccomp: one comparison after the other. It leaves out calls that this machine lacks, as runtimes do. It refuses the
// calls of programs of another architecture, which Docker's filter allows with their own numbers.
func assemble(list *specs.LinuxSeccomp) ([]unix.SockFilter, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("the numbers of system calls are unknown for this machine: %w", err)
	}
	otherwise, err := action(list.DefaultAction, list.DefaultErrnoRet)
	if err != nil {
		return nil, err
	}
	// Rules for the same call are alternatives. One without a condition overrides the others.
	type rule struct {
		args []specs.LinuxSeccompArg
		do   uint32
	}
	var order []uint32
	rules := map[uint32][]rule{}
	for _, c := range list.Syscalls {
		do, err := action(c.Action, c.ErrnoRet)
		if err != nil {
			return nil, err
		}
		for _, name := range c.Names {
			number, ok := machine.SyscallNames[name]
			if !ok {
				continue
			}
			n := uint32(number)
			if rules[n] == nil {
				order = append(order, n)
			}
			rules[n] = append(rules[n], rule{c.Args, do})
		}
	}
	var p program
	p.load(atArchitecture)
	p.jump(unix.BPF_JEQ, uint32(machine.ID), 1, 0)
	p.end(otherwise)
	p.load(atNumber)
	for _, n := range order {
		var body program
		always := slices.IndexFunc(rules[n], func(r rule) bool { return len(r.args) == 0 })
		if always >= 0 {
			body.end(rules[n][always].do)
		}
		for _, r := range rules[n] {
			if always >= 0 {
				break
			}
			var one program
			for _, a := range r.args {
				if err := one.compare(a); err != nil {
					return nil, fmt.Errorf("system call %d: %w", n, err)
				}
			}
			one.end(r.do)
			body = append(body, one.fail(len(one))...)
		}
		if always < 0 {
			body.end(otherwise)
		}
		if len(body) > 255 {
			return nil, fmt.Errorf("system call %d: %d instructions; a jump goes over 255", n, len(body))
		}
		p.jump(unix.BPF_JEQ, n, 0, uint8(len(body)))
		p = append(p, body...)
	}
	p.end(otherwise)
	if len(p) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("the filter has %d instructions; the kernel takes %d", len(p), unix.BPF_MAXINSNS)
	}
	return p, nil
}

// action is the kernel's number of the action.
func action(a specs.LinuxSeccompAction, errno *uint) (uint32, error) {
	switch a {
	case specs.ActAllow:
		return unix.SECCOMP_RET_ALLOW, nil
	case specs.ActErrno:
		n := uint32(unix.EPERM) // as in runtimes
		if errno != nil {
			n = uint32(*errno)
		}
		return unix.SECCOMP_RET_ERRNO | n&unix.SECCOMP_RET_DATA, nil
	}
	return 0, fmt.Errorf("action %s is unknown", a)
}

// program is a filter, or a part of one.
type program []unix.SockFilter

func (p *program) load(at uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at})
}

func (p *program) jump(how uint16, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, K: k, Jt: yes, Jf: no})
}

func (p *program) end(do uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: do})
}

// failed marks a jump to the end of its part; fail resolves it.
const failed = 255

// compare continues if the argument compares as in the rule, in one of the ways in Docker's list, and otherwise jumps to the part's
// end. An argument has 64 bits, and a comparison 32.
func (p *program) compare(a specs.LinuxSeccompArg) error {
	if a.Index > 5 {
		return errors.New("it has no such argument")
	}
	low := uint32(atArguments + 8*a.Index)
	high := low + 4
	want, mask := a.Value, ^uint64(0)
	wantHigh, wantLow := uint32(want>>32), uint32(want)
	switch a.Op {
	case specs.OpGreaterThan: // the high half is greater, or it is equal and the low one is greater
		p.load(high)
		p.jump(unix.BPF_JGT, wantHigh, 3, 0)
		p.jump(unix.BPF_JEQ, wantHigh, 0, failed)
		p.load(low)
		p.jump(unix.BPF_JGT, wantLow, 0, failed)
	case specs.OpLessThan: // the high half is not greater, and if it is equal the low one is less
		p.load(high)
		p.jump(unix.BPF_JGT, wantHigh, failed, 0)
		p.jump(unix.BPF_JEQ, wantHigh, 0, 2)
		p.load(low)
		p.jump(unix.BPF_JGE, wantLow, failed, 0)
	case specs.OpMaskedEqual, specs.OpEqualTo:
		if a.Op == specs.OpMaskedEqual {
			want, mask = a.ValueTwo, a.Value
		}
		for _, half := range []struct{ at, want, mask uint32 }{{high, uint32(want >> 32), uint32(mask >> 32)}, {low, uint32(want), uint32(mask)}} {
			if half.mask == 0 {
				continue
			}
			p.load(half.at)
			if half.mask != ^uint32(0) {
				*p = append(*p, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: half.mask})
			}
			p.jump(unix.BPF_JEQ, half.want, 0, failed)
		}
	default:
		return fmt.Errorf("comparison %s is unknown", a.Op)
	}
	return nil
}

// fail directs the marked jumps to the instruction at.
func (p program) fail(at int) program {
	for i := range p {
		if p[i].Jt == failed {
			p[i].Jt = uint8(at - i - 1)
		}
		if p[i].Jf == failed {
			p[i].Jf = uint8(at - i - 1)
		}
	}
	return p
}
