// Records each page fault of some processes and their descendants, or of what other processes start: the page table's entry before the kernel handled the fault, the
// mapping, and the entry after it. `make generate` compiles it; CO-RE fits it to the kernel that it is loaded into. It works only on
// x86-64, because it walks the page table itself.
#include "../../pagetable/bpf/walk.h"

// Only those fields of the kernel's structures that are read here.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct mm_struct { u64 *pgd; };
struct task_struct { int pid, tgid; struct task_struct *real_parent; struct mm_struct *mm; char comm[16]; };
struct pgprot { u64 pgprot; };
struct vm_area_struct { u64 vm_flags; struct pgprot vm_page_prot; void *vm_ops; };
#pragma clang attribute pop

// A perf event's context, of x86-64.
struct bpf_perf_event_data { u64 registers[21], period, addr; };

// FROM is the greatest number of generations between a process and the first one of its guest.
enum { FROM = 16, VM_SHARED = 8, WRITABLE = 2 };

// The same as on the Go side.
enum { FOUND = 1, ANONYMOUS = 2, SHARED = 4, PROTECTION_WRITES = 8, SEEN_BEFORE = 16, MAJOR = 32 };

struct fault {
	u64 address;       // of the page
	u64 before, after; // the page table's entry; 0: there is none
	u32 guest, tgid;
	u32 flags;
	u32 size_before, size_after; // 1 for 4 KiB, 512 for 2 MiB, …; what the entry maps
	u32 unused;
};

volatile const u64 direct; // where the kernel maps all of physical memory
volatile const u32 levels; // of page tables

u64 lost;    // faults that found no room
u64 unended; // faults that the kernel could not handle, or handled again

struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4096); __type(key, u32); __type(value, u32); } guests SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 8192); __type(key, u32); __type(value, struct fault); } pending SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 16 << 20); } faults SEC(".maps");

// named reports whether a task's program has this name. bytes is its length with the zero at its end.
static __always_inline int named(struct task_struct *task, const char *name, int bytes)
{
	char comm[16] = {};
	bpf_core_read(comm, sizeof(comm), &task->comm);
#pragma unroll
	for (int i = 0; i < bytes; i++) // and not memcmp, which the compiler may call, and BPF has none to call
		if (comm[i] != name[i])
			return 0;
	return 1;
}

u32 making; // the guest that is made now; 0: none
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1024); __type(key, u32); __type(value, u32); } makers SEC(".maps");     // processes that make guests
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 65536); __type(key, u32); __type(value, u32); } started SEC(".maps"); // by process: the guest for which it was started

// forked notes for which guest a process is started: for the one for which its parent was started, or the one that is made now.
SEC("tp_btf/sched_process_fork") int forked(u64 *c)
{
	struct task_struct *parent = (void *)c[0], *child = (void *)c[1];
	u32 from = parent->tgid, to = child->tgid, *of, guest = 0;

	if (from == to) // a thread
		return 0;
	of = bpf_map_lookup_elem(&started, &from);
	if (of)
		guest = *of;
	else if (bpf_map_lookup_elem(&makers, &from))
		guest = making;
	if (guest)
		bpf_map_update_elem(&started, &to, &guest, BPF_ANY);
	else
		bpf_map_delete_elem(&started, &to); // of an earlier process with the same number
	return 0;
}

// guest is the number of a task's guest, from 1; 0: the task is in no guest, or is the ruler or the launcher that starts the work.
static __always_inline u32 guest(struct task_struct *task)
{
	struct task_struct *t = task;
	for (int i = 0; i < FROM; i++) {
		u32 tgid = BPF_CORE_READ(t, tgid);
		u32 *g = bpf_map_lookup_elem(&guests, &tgid);
		if (g)
			return i == 0 || (i <= 2 && named(task, "launcher", sizeof("launcher"))) ? 0 : *g;
		if (tgid <= 1)
			return 0;
		t = BPF_CORE_READ(t, real_parent);
	}
	return 0;
}

// maker is the number of the guest for which a task was started, from 1; 0: for none, or the task is the ruler, which is Tare's own.
static __always_inline u32 maker(struct task_struct *task)
{
	u32 tgid = task->tgid, *of = bpf_map_lookup_elem(&started, &tgid);

	return of && !named(task, "ruler", sizeof("ruler")) ? *of : 0;
}

static long look(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct fault *f = context;
	f->flags |= FOUND;
	if (!vma->vm_ops)
		f->flags |= ANONYMOUS;
	if (vma->vm_flags & VM_SHARED)
		f->flags |= SHARED;
	if (vma->vm_page_prot.pgprot & WRITABLE)
		f->flags |= PROTECTION_WRITES;
	return 0;
}

// before runs when the kernel begins to handle a fault.
SEC("perf_event") int before(struct bpf_perf_event_data *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tid = task->pid;
	struct fault f = { .address = c->addr & -(u64)PAGE, .tgid = task->tgid };

	f.guest = guest(task) ?: maker(task);
	if (!f.guest)
		return 0;
	f.before = walk(BPF_CORE_READ(task, mm, pgd), direct, levels, f.address, &f.size_before);
	bpf_find_vma(task, f.address, look, &f, 0);
	if (bpf_map_lookup_elem(&pending, &tid))
		__sync_fetch_and_add(&unended, 1);
	if (bpf_map_update_elem(&pending, &tid, &f, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

static __always_inline int end(struct bpf_perf_event_data *c, u32 major)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tid = task->pid;
	u64 address = c->addr & -(u64)PAGE;
	struct fault *seen = bpf_map_lookup_elem(&pending, &tid), f = { .address = address, .tgid = task->tgid };

	if (seen && seen->address == address) {
		f = *seen;
		f.flags |= SEEN_BEFORE;
	} else {
		f.guest = guest(task) ?: maker(task);
	}
	if (seen)
		bpf_map_delete_elem(&pending, &tid);
	if (!f.guest)
		return 0;
	f.flags |= major;
	f.after = walk(BPF_CORE_READ(task, mm, pgd), direct, levels, address, &f.size_after);
	if (!(f.flags & FOUND))
		bpf_find_vma(task, address, look, &f, 0);
	if (bpf_ringbuf_output(&faults, &f, sizeof(f), 0))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

// minor and major run when the kernel has handled it.
SEC("perf_event") int minor(struct bpf_perf_event_data *c) { return end(c, 0); }
SEC("perf_event") int major(struct bpf_perf_event_data *c) { return end(c, MAJOR); }

char LICENSE[] SEC("license") = "GPL";
