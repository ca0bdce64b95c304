//go:build linux

package trace

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/notebook"
)

// The tracer of the kernel's own time, by sampling what runs.
var _ = add(tracer{
	name:     notebook.TracerAccounting,
	on:       "perf's software event cpu-clock",
	programs: []string{"sampled"},
	attach: func(t *Trace) error {
		return t.attachPerf("sampled", unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: sampleRate, Bits: unix.PerfBitFreq})
	},
	read: (*Trace).readSamples,
})

// sampleRate is the number of samples a second on each CPU.
const sampleRate = 499

func (t *Trace) readSamples(p *notebook.Trace) error {
	k := t.kit
	if err := k.readSymbols(); err != nil {
		return err
	}
	var ip, n, all, kernel uint64
	by := map[string]uint64{}
	each := k.coll.Maps["places"].Iterate()
	for each.Next(&ip, &n) {
		all += n
		if ip != 0 {
			kernel += n
			by[kind(k.symbols.Name(ip))] += n
		}
	}
	if err := each.Err(); err != nil {
		return err
	}
	p.Figures["samples"] = float64(all)
	p.Figures["kernel_s"] = float64(kernel) / sampleRate
	p.Figures["cgroup_s"] = float64(by["cgroup"]) / sampleRate
	p.Figures["scheduler_s"] = float64(by["scheduler"]) / sampleRate
	return nil
}

// The first are prefixes of the kernel's functions that account for cgroups and enforce their quotas, the second those of the
// scheduler's other functions. Inlined functions are not seen.
var (
	cgroupNames = []string{"mem_cgroup", "memcg", "__memcg", "obj_cgroup", "__mem_cgroup", "charge_memcg", "try_charge", "uncharge_", "refill_stock",
		"consume_stock", "drain_stock", "__mod_memcg", "mod_memcg", "__mod_lruvec", "__mod_objcg", "count_memcg", "__count_memcg", "page_counter",
		"cgroup", "__cgroup", "css_", "cpuacct", "blkcg", "blk_cgroup", "pids_can", "pids_try", "pids_charge", "account_cfs_rq", "__account_cfs_rq",
		"throttle_", "unthrottle_", "check_cfs_rq", "assign_cfs_rq", "__assign_cfs_rq", "__refill_cfs", "start_cfs_bandwidth", "sched_cfs_", "do_sched_cfs",
		"distribute_cfs", "tg_throttle", "tg_unthrottle", "tg_set", "sched_cgroup", "cpu_cgroup", "update_cfs_group", "update_tg_load"}
	schedulerNames = []string{"__schedule", "schedule", "pick_", "enqueue_", "dequeue_", "put_prev", "set_next", "update_curr", "update_load", "update_rq", "__update_load",
		"try_to_wake", "ttwu_", "select_task", "select_idle", "activate_task", "deactivate_task", "finish_task", "prepare_task", "context_switch", "__switch_to", "switch_mm",
		"sched_", "place_entity", "check_preempt", "wakeup_preempt", "resched_", "reweight_", "entity_", "avg_vruntime", "load_balance", "sched_balance", "newidle", "nohz_", "task_tick", "scheduler_tick"}
)

// kind is the purpose of a kernel function: "cgroup", "scheduler" or "".
func kind(name string) string {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	switch {
	case has(cgroupNames):
		return "cgroup"
	case has(schedulerNames):
		return "scheduler"
	}
	return ""
}
