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
	if _, err := Parse("f.yaml", []byte(file)); err == nil || !strings.Contains(err.Error(), "devices=floppy: virt-manager, or a list") {
		t.Errorf("devices=floppy: %v", err)
	}
}
