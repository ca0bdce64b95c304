// Samples of what runs, by address in the kernel.
#include "trace.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u64);
} places SEC(".maps");

SEC("perf_event")
int sampled(struct bpf_perf_event_data *ctx)
{
	struct seat *a = seat(bpf_get_current_pid_tgid());
	if (!a || !look.open || a->role >= ROLES)
		return 0;
	u64 ip = ctx->regs.ip, one = 1;
	if (!(ip >> 63))
		ip = 0; // the program's own code
	u64 *n = bpf_map_lookup_elem(&places, &ip);
	if (n) {
		__sync_fetch_and_add(n, 1);
		return 0;
	}
	if (bpf_map_update_elem(&places, &ip, &one, BPF_NOEXIST)) {
		struct sums *s = mine();
		if (s)
			s->lost++;
	}
	return 0;
}
