// Samples of page faults, by whether the memory is that of a file.
#include "trace.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct vm_area_struct { struct file *vm_file; };
#pragma clang attribute pop

enum { ANONYMOUS, OF_FILE, NOT_KNOWN, FAULTS };
u64 faults[FAULTS];

static long vma(struct task_struct *t, struct vm_area_struct *v, u32 *kind)
{
	*kind = v->vm_file ? OF_FILE : ANONYMOUS;
	return 0;
}

SEC("perf_event")
int faulted(struct bpf_perf_event_data *ctx)
{
	struct seat *a = seat(bpf_get_current_pid_tgid());
	if (!a || !look.open || a->role >= ROLES)
		return 0;
	u32 kind = NOT_KNOWN;
	bpf_find_vma(bpf_get_current_task_btf(), ctx->addr, vma, &kind, 0);
	if (kind < FAULTS)
		__sync_fetch_and_add(&faults[kind], 1);
	return 0;
}
