package guestinit

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParams(t *testing.T) {
	want := Params{Mode: ModeVMCN, Name: "guest-1", Cores: 4, Pinned: true, Network: "bridge", Address: netip.MustParsePrefix("198.18.0.7/24")}
	arg, err := want.Arg()
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseParams("console=ttyS0 quiet " + arg + " panic=-1\n")
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if strings.ContainsAny(arg, " \t\"'") {
		t.Errorf("%q is not one word", arg)
	}
	if _, err := (Params{Mode: ModeVM, Name: strings.Repeat("x", 2000)}).Arg(); err == nil {
		t.Error("parameters that do not fit the kernel's command line were accepted")
	}
}

func TestBadParams(t *testing.T) {
	for name, p := range map[string]Params{"mode": {Mode: "other"}, "cores": {Mode: ModeVMCN}, "address": {Mode: ModeVM, Address: netip.MustParsePrefix("fd00::2/64")}} {
		arg, err := p.Arg()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseParams(arg); err == nil {
			t.Errorf("%s: %+v was accepted", name, p)
		}
	}
	for _, cmdline := range []string{"", "quiet", argPrefix, argPrefix + "!", argPrefix + "e30x", argPrefix + "bnVsbA"} {
		if p, err := parseParams(cmdline); err == nil {
			t.Errorf("%q: %+v, want an error", cmdline, p)
		}
	}
}

func FuzzParams(f *testing.F) {
	f.Add("console=ttyS0 " + argPrefix + "eyJtb2RlIjoidm0ifQ")
	f.Add(argPrefix)
	f.Fuzz(func(t *testing.T, cmdline string) {
		p, err := parseParams(cmdline)
		if err == nil && p.Mode == ModeVMCN && p.Cores < 1 {
			t.Errorf("%q: %+v was accepted", cmdline, p)
		}
	})
}
