//go:build linux

package trace

import (
	"testing"

	"tare/notebook"
)

// The kernel charges running time to a cgroup's quota only where it has one.
func TestChargesOfAQuota(t *testing.T) {
	needRoot(t)
	k, err := Open([]string{notebook.TracerCharges, notebook.TracerThreads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	if why := k.Missing()[notebook.TracerCharges]; why != "" { // a hardened kernel refuses all programs of this type; a VM's kernel takes them
		t.Skip(why)
	}
	free := groupsFor(t, nil, "cpu")[0]
	p, _ := watched(t, k, 1, inGroup(t, free, loadCommand(t, "run", "2", "1", "50")))
	if f := p.Figures; f["charges"] < 50 || f["quota_charges"] != 0 {
		t.Errorf("without a quota: %v charges, %v of a quota", f["charges"], f["quota_charges"])
	}
	bound := groupsFor(t, map[string]string{"cpu.cfs_quota_us": "50000"}, "cpu")[0]
	p, _ = watched(t, k, 1, inGroup(t, bound, loadCommand(t, "run", "2", "1", "50")))
	if f := p.Figures; f["quota_charges"] < 50 || f["charges"] < f["quota_charges"]+50 {
		t.Errorf("with a quota: %v charges, %v of a quota", f["charges"], f["quota_charges"])
	}
}
