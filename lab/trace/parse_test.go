//go:build linux

package trace

import (
	"os"
	"strings"
	"testing"
)

// exitFormat is kvm_exit's description as Linux 6.18 gives it, its lists of reasons shortened.
const exitFormat = `name: kvm_exit
ID: 103
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:unsigned int exit_reason;	offset:8;	size:4;	signed:0;
	field:unsigned long guest_rip;	offset:16;	size:8;	signed:0;
	field:u32 isa;	offset:24;	size:4;	signed:0;

print fmt: "vcpu %u reason %s%s%s", REC->vcpu_id, (REC->isa == 1) ? __print_symbolic(REC->exit_reason & 0xffff, { 0, "EXCEPTION_NMI" }, { 12, "HLT" }, { 48, "EPT_VIOLATION" }) : __print_symbolic(REC->exit_reason, { 0x040 + 14, "PF excp" }, { 0x078, "hlt" }, { 0x400, "npf" }, { -1, "invalid_guest_state" }), (REC->isa == 1) ? __print_flags(REC->exit_reason & ~0xffff, " ", { 0x80000000, "FAILED_VMENTRY" }) : ""
`

func TestReasonsOfExits(t *testing.T) {
	for _, c := range []struct {
		intel  bool
		reason uint32
		want   string
	}{
		{true, 12, "HLT"}, {true, 48, "EPT_VIOLATION"}, {true, 0x8000000c, "HLT"}, {true, 99, "reason 99"},
		{false, 0x78, "hlt"}, {false, 0x4e, "PF excp"}, {false, 0xffffffff, "invalid_guest_state"}, {false, 12, "reason 12"},
	} {
		at, names, err := parseExitFormat(exitFormat, c.intel)
		if err != nil || at != 8 {
			t.Fatalf("offset %d, %v; want 8", at, err)
		}
		k := kvmFormat{reasons: names}
		if got := k.name(c.reason); got != c.want {
			t.Errorf("intel %v, reason %#x: %q, want %q", c.intel, c.reason, got, c.want)
		}
	}
	for _, bad := range []string{"", "field:unsigned int exit_reason;\toffset:99999;\tsize:4;", strings.Replace(exitFormat, "exit_reason;", "reason;", 1)} {
		if _, _, err := parseExitFormat(bad, true); err == nil {
			t.Errorf("%.40q was taken", bad)
		}
	}
}

func FuzzExitFormat(f *testing.F) {
	f.Add(exitFormat, true)
	f.Add(exitFormat, false)
	f.Fuzz(func(t *testing.T, text string, intel bool) {
		at, names, err := parseExitFormat(text, intel)
		if err == nil && (names == nil || at > 1<<16) {
			t.Errorf("offset %d, names %v", at, names)
		}
	})
}

func TestKindsOfFunctions(t *testing.T) {
	for name, want := range map[string]string{"mem_cgroup_charge": "cgroup", "throttle_cfs_rq": "cgroup", "__schedule": "scheduler", "do_sys_open": ""} {
		if got := kind(name); got != want {
			t.Errorf("%s is for %q, want %q", name, got, want)
		}
	}
}

// The description that this kernel gives is read.
func TestKVMsOwnFormat(t *testing.T) {
	needRoot(t)
	if _, err := os.Stat("/dev/kvm"); err != nil {
		t.Skip("needs KVM in the kernel")
	}
	k, err := readKVMFormat()
	if err != nil {
		t.Fatal(err)
	}
	if k.exit == 0 || k.entry == 0 || k.exit == k.entry || k.reasonAt < 8 || len(k.reasons) < 20 {
		t.Errorf("%+v", k)
	}
}
