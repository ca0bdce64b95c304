package memory

import (
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/stats"
)

// unusedDevices is how much less of the host's memory a VM takes without some of its devices ("virtualization-overheads", Table
// 6.5). Sizes are MiB.
type unusedDevices struct {
	Row            *data.Row      // of the VM without these devices
	Kinds          []string       // the kinds of devices that it lacks: notebook.Video, …
	Alone          stats.Estimate // saved by a single VM on its host, over the rounds that both VMs have
	Added          stats.Estimate // saved by one more VM next to it; without rounds if VMs were weighed at only one number
	PublishedAlone float64        // the paper's value; NaN: none
	PublishedAdded float64
}

// The paper's savings in MB, by kinds of devices (Table 6.5, and the end of section 6.6.2).
var (
	savedAlone = map[string]float64{
		"video graphics": 13.5, "audio": 5.3, "USB": 5.2, "video graphics audio": 15.3, "video graphics USB": 15.2, "audio USB": 5.12,
		"video graphics audio USB": 13.6,
	}
	savedAdded = map[string]float64{"video graphics audio": 5.3}
)

// unusedOf compares each VM among rows with the VMs that are made and weighed in the same way but have fewer devices. If the study
// merged pages, the comparison is with merged pages, as in the paper.
func unusedOf(s *data.Summary, rows []*data.Row) (all []unusedDevices) {
	for _, base := range rows {
		full, ok := devicesOf(base)
		if !ok || full.Devices == "" || base.Treatment.AA {
			continue
		}
		for _, r := range rows {
			fewer, ok := devicesOf(r)
			if !ok || r == base || !alikeButForDevices(base, r, full, fewer) {
				continue
			}
			lacks := lacking(full.Devices, fewer.Devices)
			alone, added := kind.Alone, kind.Added
			if weighed(r).KSM != "" {
				alone, added = kind.AloneKSM, kind.AddedKSM
			}
			u := unusedDevices{Row: r, Kinds: lacks, Alone: less(s, base, r, alone.Name), Added: less(s, base, r, added.Name), PublishedAlone: math.NaN(), PublishedAdded: math.NaN()}
			kinds := strings.Join(lacks, " ")
			if v, ok := savedAlone[kinds]; ok {
				u.PublishedAlone = v
			}
			if v, ok := savedAdded[kinds]; ok {
				u.PublishedAdded = v
			}
			all = append(all, u)
		}
	}
	return all
}

// devicesOf is how the row's VM is made; ok is false if the row is not a VM or was not weighed.
func devicesOf(r *data.Row) (m notebook.Machine, ok bool) {
	if r.Treatment.Platform != notebook.VM || weighed(r) == nil || r.Rounds == 0 {
		return m, false
	}
	m, err := notebook.ParseMachine(r.Treatment.Machine)
	return m, err == nil
}

// alikeButForDevices reports whether the two can be compared: a is a VM with every kind of device, and b is the same VM with fewer.
func alikeButForDevices(a, b *data.Row, full, less notebook.Machine) bool {
	want := strings.Split(full.Devices, ",")
	if !notebook.AllKinds(full.Devices) || less.Devices == full.Devices {
		return false
	}
	for _, d := range strings.Split(less.Devices, ",") {
		if d != "" && !slices.Contains(want, d) {
			return false
		}
	}
	full.Devices, less.Devices = "", ""
	x, y := a.Treatment.Variant(), b.Treatment.Variant()
	x.Machine, y.Machine = "", ""
	return full == less && x == y && a.Treatment.Provisioning == b.Treatment.Provisioning && a.Treatment.Instance.SameSize(b.Treatment.Instance) &&
		a.HostCores == b.HostCores && data.SameWork(a, b)
}

// lacking are the kinds of devices that full has and less has not.
func lacking(full, less string) []string {
	has := notebook.DeviceKinds(less)
	return slices.DeleteFunc(notebook.DeviceKinds(full), func(k string) bool { return slices.Contains(has, k) })
}

// less is x's value of a secondary metric minus y's, over the rounds that both have.
func less(s *data.Summary, x, y *data.Row, name string) stats.Estimate {
	each, of := data.ByRound{}, map[data.Block]float64{}
	for _, v := range y.SecondaryValues(name) {
		of[v.Block] = v.Mean
	}
	for _, v := range x.SecondaryValues(name) {
		if w, ok := of[v.Block]; ok {
			each.Add(v.Block, v.Mean-w)
		}
	}
	return s.OverRounds(each)
}
