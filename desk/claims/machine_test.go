package claims

import (
	"slices"
	"strings"
	"testing"
)

// A paper's VM is made in the usual way; a claim about others names them, in whatever words mean them.
func TestMachineOfAClaim(t *testing.T) {
	w := newWorld(host("h", 2))
	w.add(0, "cpu bm 1/1GB", 1)
	for _, machine := range []string{"", "devices=balloon", "devices=virt-manager"} {
		w.add(0, "cpu vm qemu kvm pinned 1/1GB", 1).Treatment.Machine = machine
	}
	j := &judge{sum: w.sum}
	vm := Values{"vm"}
	for _, c := range []struct {
		s    Selector
		want []string
	}{
		{Selector{Platform: vm}, []string{""}},
		{Selector{Platform: vm, Machine: Values{"usual"}}, []string{""}},
		{Selector{Platform: vm, Machine: Values{"devices=balloon,usb,qxl,ich6,spice", "usual"}}, []string{"", "devices=virt-manager"}},
	} {
		var got []string
		for _, r := range j.rows(c.s) {
			got = append(got, r.Treatment.Machine)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v chooses machines %q, want %q", c.s, got, c.want)
		}
	}
	of := Selector{Platform: vm, Machine: Values{"devices=virt-manager"}}
	for _, c := range []struct {
		to   Selector
		want string
	}{{Selector{Machine: Values{"devices=balloon"}}, "vm devices=balloon"}, {Selector{Machine: Values{"usual"}}, "vm "}, {Selector{Platform: Values{"bm"}}, "bm "}} {
		ps := j.pairs(of, of.over(c.to))
		if len(ps) != 1 || ps[0].y.Treatment.Platform+" "+ps[0].y.Treatment.Machine != c.want {
			t.Errorf("%+v to %+v: %d pairs, want one with %q", of, c.to, len(ps), c.want)
		}
	}
	const file = `{paper: p, groups: [{name: g, claims: [{id: a, place: b, finding: c, hypothesis: {ratio: {of: {machine: devices=floppy}, higher: 2%}}}]}]}`
	if _, err := Parse("f.yaml", []byte(file)); err == nil || !strings.Contains(err.Error(), "devices=floppy: must be virt-manager, or a comma-separated list") {
		t.Errorf("devices=floppy: %v", err)
	}
}

// A file's machine is the VMs' in every selector that names no other. Claims about containers have none, and say none.
func TestMachineOfAFile(t *testing.T) {
	const text = `{paper: p, machine: cache=none, groups: [{name: g, about: {workload: cpu}, claims: [
  {id: both, place: b, finding: c, tolerance: t, hypothesis: {ratio: {of: {platform: [cn, vm]}, between: [1.5, 2.5]}}},
  {id: gain, place: b, finding: c, tolerance: t, hypothesis: {gain: {of: {platform: cn, provisioning: vanilla}, to: {provisioning: pinned}, than: {platform: vm}, between: [1.5, 2.5]}}},
  {id: own, place: b, finding: c, tolerance: t, hypothesis: {ratio: {of: {platform: vm, provisioning: pinned, machine: usual}, between: [2.5, 3.5]}}}]}]}`
	all, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(host("h", 2))
	for what, mean := range map[string]float64{"bm": 1, "cn crun vanilla": 2.4, "cn crun pinned": 1.6, "vm qemu kvm vanilla cache=none": 1.6, "vm qemu kvm pinned cache=none": 2, "vm qemu kvm pinned": 3} {
		w.add(0, "cpu "+what+" 1/1GB", mean)
	}
	for _, v := range Judge(w.exact(), all) {
		if v.Answer != Holds {
			t.Errorf("%s: %s: %s", v.Claim.ID, v.Answer, Why(v))
		}
	}
	usual := newWorld(host("h", 2))
	for what, mean := range map[string]float64{"bm": 1, "vm qemu kvm vanilla": 2, "vm qemu kvm pinned": 3} {
		usual.add(0, "cpu "+what+" 1/1GB", mean)
	}
	want := map[string]string{"both": "cpu cn is not in these studies; cpu vm with cache=none is not in these studies", "gain": "cpu cn vanilla is not in these studies", "own": ""}
	for _, v := range Judge(usual.exact(), all) {
		if why := want[v.Claim.ID]; why != "" && (v.Answer != NotTestable || Why(v) != why) || why == "" && v.Answer != Holds {
			t.Errorf("in a folder with the usual machine, %s: %s: %s", v.Claim.ID, v.Answer, Why(v))
		}
	}
	if _, err := Parse("f.yaml", []byte("{paper: p, machine: cache=some, groups: []}")); err == nil || !strings.Contains(err.Error(), "cache=some") {
		t.Errorf("cache=some: %v", err)
	}
}

// If a file names several machines, a claim is judged by the first that was measured for it, whatever the others show. An alternative replaces the
// machine in the whole claim, so both sides of a comparison have the same machine.
func TestMachinesOfAFile(t *testing.T) {
	const text = `{paper: p, machine: [cpu=qemu64, usual], groups: [{name: g, about: {workload: cpu}, claims: [
  {id: one, place: b, finding: c, tolerance: t, hypothesis: {ratio: {of: {platform: vm, provisioning: pinned}, between: [1.5, 2.5]}}},
  {id: both, place: b, finding: c, tolerance: t, hypothesis: {ratio: {of: {platform: vm, provisioning: vanilla}, to: {platform: vm, provisioning: pinned}, between: [1.5, 2.5]}}}]}]}`
	all, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		measured  map[string]float64
		one, both Answer
	}{
		{map[string]float64{"bm": 1, "vm qemu kvm pinned": 2, "vm qemu kvm vanilla": 4}, Holds, Holds},
		{map[string]float64{"bm": 1, "vm qemu kvm pinned": 3, "vm qemu kvm vanilla": 6, "vm qemu kvm pinned cpu=qemu64": 2}, Holds, Holds},
		{map[string]float64{"bm": 1, "vm qemu kvm pinned": 2, "vm qemu kvm vanilla": 4, "vm qemu kvm pinned cpu=qemu64": 3}, DoesNotHold, Holds},
		{map[string]float64{"bm": 1, "vm qemu kvm pinned": 2, "vm qemu kvm vanilla": 4, "vm qemu kvm pinned cpu=qemu64": 2, "vm qemu kvm vanilla cpu=qemu64": 8}, Holds, DoesNotHold},
		{map[string]float64{"bm": 1}, NotTestable, NotTestable},
	} {
		w := newWorld(host("h", 2))
		for what, mean := range c.measured {
			w.add(0, "cpu "+what+" 1/1GB", mean)
		}
		vs := Judge(w.exact(), all)
		if one, both := Find(t, vs, "one"), Find(t, vs, "both"); one.Answer != c.one || both.Answer != c.both {
			t.Errorf("%v: %s and %s, want %s and %s: %s; %s", c.measured, one.Answer, both.Answer, c.one, c.both, Why(one), Why(both))
		}
	}
	if _, err := Parse("f.yaml", []byte(strings.Replace(text, "usual", "cache=some", 1))); err == nil || !strings.Contains(err.Error(), "cache=some") {
		t.Errorf("cache=some: %v", err)
	}
}
