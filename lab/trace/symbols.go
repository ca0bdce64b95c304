//go:build linux

package trace

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// symbols are the kernel's functions, by address.
type symbols struct {
	at    []uint64
	names []string
}

// maxSymbols bounds what is kept of /proc/kallsyms.
const maxSymbols = 1 << 21

func readSymbols() (*symbols, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseSymbols(f)
}

// parseSymbols reads /proc/kallsyms: ADDRESS TYPE NAME [MODULE]. Only functions are kept.
func parseSymbols(r io.Reader) (*symbols, error) {
	type symbol struct {
		at   uint64
		name string
	}
	var all []symbol
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 3 || f[1] != "t" && f[1] != "T" {
			continue
		}
		at, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/kallsyms: %q is no address", f[0])
		}
		if at == 0 {
			return nil, fmt.Errorf("/proc/kallsyms shows no addresses: sysctl kernel.kptr_restrict=1, and root")
		}
		if len(all) == maxSymbols {
			return nil, fmt.Errorf("/proc/kallsyms: more than %d functions", maxSymbols)
		}
		all = append(all, symbol{at, f[2]})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("/proc/kallsyms: %w", err)
	}
	slices.SortStableFunc(all, func(a, b symbol) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	s := &symbols{}
	for _, y := range all {
		s.at, s.names = append(s.at, y.at), append(s.names, y.name)
	}
	return s, nil
}

// name is the function that the address is in.
func (s *symbols) name(ip uint64) string {
	i, found := slices.BinarySearch(s.at, ip)
	if !found {
		i--
	}
	if i < 0 {
		return fmt.Sprintf("%#x", ip)
	}
	return s.names[i]
}

// Beginnings of names of the kernel's functions that account for cgroups and hold them to their quotas, and of the scheduler's
// others. What the compiler put into its callers is not seen.
var (
	accounting = []string{"mem_cgroup", "memcg", "__memcg", "obj_cgroup", "__mem_cgroup", "charge_memcg", "try_charge", "uncharge_", "refill_stock",
		"consume_stock", "drain_stock", "__mod_memcg", "mod_memcg", "__mod_lruvec", "__mod_objcg", "count_memcg", "__count_memcg", "page_counter",
		"cgroup", "__cgroup", "css_", "cpuacct", "blkcg", "blk_cgroup", "pids_can", "pids_try", "pids_charge", "account_cfs_rq", "__account_cfs_rq",
		"throttle_", "unthrottle_", "check_cfs_rq", "assign_cfs_rq", "__assign_cfs_rq", "__refill_cfs", "start_cfs_bandwidth", "sched_cfs_", "do_sched_cfs",
		"distribute_cfs", "tg_throttle", "tg_unthrottle", "tg_set", "sched_cgroup", "cpu_cgroup", "update_cfs_group", "update_tg_load"}
	scheduling = []string{"__schedule", "schedule", "pick_", "enqueue_", "dequeue_", "put_prev", "set_next", "update_curr", "update_load", "update_rq", "__update_load",
		"try_to_wake", "ttwu_", "select_task", "select_idle", "activate_task", "deactivate_task", "finish_task", "prepare_task", "context_switch", "__switch_to", "switch_mm",
		"sched_", "place_entity", "check_preempt", "wakeup_preempt", "resched_", "reweight_", "entity_", "avg_vruntime", "load_balance", "sched_balance", "newidle", "nohz_", "task_tick", "scheduler_tick"}
)

// kind says what a kernel function is for: "cgroup", "scheduler" or "".
func kind(name string) string {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	switch {
	case has(accounting):
		return "cgroup"
	case has(scheduling):
		return "scheduler"
	}
	return ""
}
