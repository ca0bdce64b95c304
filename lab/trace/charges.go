//go:build linux

package trace

import "tare/notebook"

// The tracer of the accounting of CPU time: how often the kernel charges a thread's running time to its cgroups and to their CPU quotas. The
// paper "pinning" says that pinning makes these invocations fewer (section IV-B).
var _ = add(tracer{
	name:     notebook.TracerCharges,
	on:       "the kernel's functions that account for CPU time (BPF's fentry; Linux 5.18 or later with BTF)",
	programs: []string{"charge_group", "charge_cpuacct", "charge_quota"},
	attach: func(t *Trace) error {
		if err := t.kit.put("charged", 0, [2]uint64{}); err != nil {
			return err
		}
		return t.attachAll("charge_group", "charge_cpuacct", "charge_quota")
	},
	read: func(t *Trace, p *notebook.Trace) error {
		var charged [2]uint64 // to groups, to quotas
		err := t.kit.get("charged", &charged)
		p.Figures["charges"], p.Figures["quota_charges"] = float64(charged[0]+charged[1]), float64(charged[1])
		return err
	},
})
