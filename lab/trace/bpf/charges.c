// Calls of cgroups' accounting of CPU time.
#include "trace.h"

// How often the kernel charged the running time of a guest's thread to its cgroups, and to their quotas.
u64 charged[2];

static __always_inline int charges(u32 what)
{
	struct seat *a = seat(bpf_get_current_pid_tgid());
	if (a && look.open && a->role < ROLES)
		__sync_fetch_and_add(&charged[what], 1);
	return 0;
}

SEC("fentry/__cgroup_account_cputime")
int BPF_PROG(charge_group) { return charges(0); }

SEC("fentry/cpuacct_charge")
int BPF_PROG(charge_cpuacct) { return charges(0); }

SEC("fentry/__account_cfs_rq_runtime")
int BPF_PROG(charge_quota) { return charges(1); }
