package data

import (
	"fmt"
	"slices"

	"tare/notebook"
)

// Networks says whether the treatments of a workload differ in how they are connected, measured or left out: then each
// is named with it. Bare metal has no choice and does not count.
func (s *Summary) Networks(workload string) bool {
	first, any := "", false
	differs := func(t notebook.Treatment) bool {
		if t.Workload != workload || t.Platform == notebook.BM {
			return false
		}
		if !any {
			first, any = t.Network, true
		}
		return t.Network != first
	}
	for i := range s.Rows {
		if differs(s.Rows[i].Treatment) {
			return true
		}
	}
	for i := range s.LeftOut {
		if differs(s.LeftOut[i].Treatment) {
			return true
		}
	}
	return false
}

// Online says how many of a host's CPUs were online, where that must be said: not all of them were, or in another row
// of the workload not all. Empty: no need.
func (s *Summary) Online(hostID, workload string, cores int) string {
	all := 0
	for _, h := range s.Hosts {
		if h.ID == hostID {
			all = len(h.CPUs)
		}
	}
	if cores == 0 || all == 0 {
		return ""
	}
	if cores != all {
		return fmt.Sprintf("with %d of %d CPUs", cores, all)
	}
	for i := range s.Rows {
		if r := &s.Rows[i]; r.HostID == hostID && r.Treatment.Workload == workload && r.HostCores != all {
			return fmt.Sprintf("with all %d CPUs", all)
		}
	}
	return ""
}

// OnlineIn is Online for an A/A check.
func (s *Summary) OnlineIn(a AACheck) string {
	for _, h := range s.Hosts {
		if h.Name == a.Host {
			return s.Online(h.ID, a.Workload, a.HostCores)
		}
	}
	return ""
}

// times are units of what cannot be less than nothing, though an interval may reach below it.
var times = []string{"ns", "us", "µs", "ms", "s", "min", "h"}

// Floor is the lower end that is to be said of an interval of a metric, or of a ratio of it: a time, or a ratio of times,
// is not below 0.
func Floor(m notebook.Metric, low float64) float64 {
	if slices.Contains(times, m.Unit) {
		return max(low, 0)
	}
	return low
}

// Label names a row's treatment in few words, with its instance type, and with its network and its host's CPUs where
// rows of its workload differ in them: "cn docker vanilla 1/1GB". It is safe for a terminal.
func (s *Summary) Label(r *Row) string {
	l := treatment(r.Treatment) + " " + r.Treatment.Instance.Name
	if r.Treatment.Network != "" && s.Networks(r.Treatment.Workload) {
		l += " network " + r.Treatment.Network
	}
	if on := s.Online(r.HostID, r.Treatment.Workload, r.HostCores); on != "" {
		l += " " + on
	}
	return Printable(l)
}

// Place names what a row's treatment is compared within: "ffmpeg (segments=1) on bench". It is safe for a terminal.
func (r *Row) Place() string {
	p := r.Treatment.Workload
	if params := sortedParams(r.Treatment.Params); params != "" {
		p += " (" + params + ")"
	}
	return Printable(p + " on " + r.Host)
}

// Rung says in few words which rung of the isolation ladder a treatment is: "up to seccomp", "full". Empty: of none.
func Rung(isolation string) string {
	if isolation == "" || isolation == notebook.IsolationFull {
		return isolation
	}
	return "up to " + isolation
}

// isolated says a rung in words, to follow a treatment's name.
func isolated(isolation string) string {
	switch isolation {
	case "":
		return ""
	case notebook.IsolationFull:
		return " with every layer"
	}
	return " with the layers up to " + isolation
}

// connected says a network in words, to follow a treatment's name.
func connected(network string) string {
	switch network {
	case "":
		return ""
	case notebook.NetBridge:
		return " on a bridge"
	case notebook.NetHost:
		return " on the host's network"
	case notebook.NetNone:
		return " without a network"
	}
	return " on the network " + network
}
