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

// unusedDevices is what a VM takes less of the host's memory without some of its devices ("virtualization-overheads", Table 6.5). Sizes are MiB.
type unusedDevices struct {
	Row            *data.Row      // of the VM without them
	Kinds          []string       // of the devices that it lacks: notebook.Video, …
	Alone          stats.Estimate // saved by a VM that is alone on its host, over the rounds that both have
	Added          stats.Estimate // saved by one more beside it; without rounds where VMs were weighed at one number alone
	PublishedAlone float64        // what the paper has; NaN: nothing
	PublishedAdded float64
}

// The paper's savings in MB (Table 6.5, and the end of section 6.6.2), by kinds of devices.
var (
	savedAlone = map[string]float64{
		"video graphics": 13.5, "audio": 5.3, "USB": 5.2, "video graphics audio": 15.3, "video graphics USB": 15.2, "audio USB": 5.12,
		"video graphics audio USB": 13.6,
	}
	savedAdded = map[string]float64{"video graphics audio": 5.3}
)

// unusedOf compares of some rows each VM with those that are made and weighed like it but for having fewer devices. It is with pages
// merged, as in the paper, where the study merged them.
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

// devicesOf is how the row's VM is made; ok is false where it is none, or was not weighed.
func devicesOf(r *data.Row) (m notebook.Machine, ok bool) {
	if r.Treatment.Platform != notebook.VM || weighed(r) == nil || r.Rounds == 0 {
		return m, false
	}
	m, err := notebook.ParseMachine(r.Treatment.Machine)
	return m, err == nil
}

// alikeButForDevices says whether b is the same VM as a with fewer devices, a having every kind of them, and they can be compared.
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

// lacking are the kinds of devices in one list and not in the other.
func lacking(full, less string) []string {
	has := notebook.DeviceKinds(less)
	return slices.DeleteFunc(notebook.DeviceKinds(full), func(k string) bool { return slices.Contains(has, k) })
}

// less is how much more of a secondary metric x has than y, over the rounds that both have.
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
