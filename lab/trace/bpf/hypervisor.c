// Exits of virtual CPUs. These are classic tracepoints, because only they have the reason in a field. The tracepoint's format says where.
#include "trace.h"

u32 reason_at; // offset of exit_reason in the record of kvm_exit

struct exit { u64 since; u32 reason; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct exit);
} left SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct waited);
} exits SEC(".maps");

SEC("tracepoint/kvm/kvm_exit")
int vcpu_exit(void *ctx)
{
	struct seat *a = seat(bpf_get_current_pid_tgid());
	if (!a || !look.open)
		return 0;
	struct exit e = {bpf_ktime_get_ns()};
	bpf_probe_read_kernel(&e.reason, sizeof e.reason, ctx + reason_at);
	u32 pid = a->id;
	bpf_map_update_elem(&left, &pid, &e, BPF_ANY);
	return 0;
}

SEC("tracepoint/kvm/kvm_entry")
int vcpu_entry(void *ctx)
{
	u32 pid = bpf_get_current_pid_tgid();
	struct exit *e = bpf_map_lookup_elem(&left, &pid);
	if (!e)
		return 0;
	u64 ns = bpf_ktime_get_ns() - e->since;
	struct waited *w = bpf_map_lookup_elem(&exits, &e->reason);
	if (w) {
		__sync_fetch_and_add(&w->ns, ns);
		__sync_fetch_and_add(&w->count, 1);
	} else {
		struct waited first = {ns, 1};
		bpf_map_update_elem(&exits, &e->reason, &first, BPF_NOEXIST);
	}
	bpf_map_delete_elem(&left, &pid);
	return 0;
}
