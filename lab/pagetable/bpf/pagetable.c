// Reads page tables of x86-64: where they lie, and which of their entries the processor has used. `make generate` compiles it; CO-RE fits it
// to the kernel that it is loaded into.
#include "walk.h"

// Only those fields of the kernel's structures that are read here.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct mm_struct { u64 *pgd; };
struct task_struct { int pid, tgid; struct mm_struct *mm; };
struct bpf_iter__task { struct task_struct *task; };
#pragma clang attribute pop

struct calibration { u64 address, direct, entry; u32 levels, size; u64 pgd; };

// calibrate walks the caller's own page table.
SEC("syscall") int calibrate(struct calibration *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 size;
	u64 *pgd = BPF_CORE_READ(task, mm, pgd);

	c->pgd = (u64)pgd;
	c->entry = c->direct ? walk(pgd, c->direct, c->levels, c->address, &size) : 0;
	c->size = c->direct ? size : 0;
	return 0;
}

struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1); __type(key, u32); __type(value, u64); } roots SEC(".maps"); // by process: its pgd

// find enters the roots of the page tables of the wanted processes.
SEC("iter/task") int find(struct bpf_iter__task *c)
{
	struct task_struct *task = c->task;
	u64 pgd;
	u32 pid;

	if (!task || task->pid != task->tgid)
		return 0;
	pid = task->tgid;
	if (!bpf_map_lookup_elem(&roots, &pid))
		return 0;
	pgd = (u64)BPF_CORE_READ(task, mm, pgd);
	bpf_map_update_elem(&roots, &pid, &pgd, BPF_EXIST);
	return 0;
}

// The same as on the Go side.
enum { BLOCK = 512, WORDS = BLOCK / 64 };

struct block {
	u64 direct, pgd;
	u64 address; // of the first page
	u32 levels, unused;
	u64 skip;          // no page before this address is mapped
	u64 bits[WORDS]; // the pages whose entries the processor has used
};

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct block); } blocks SEC(".maps");

static long used(u64 i, struct block **of)
{
	struct block *b = *of;
	u64 at = b->address + i * PAGE, entry;
	u32 size;

	if (i >= BLOCK)
		return 1;
	if (at < b->skip)
		return 0;
	entry = walk((u64 *)b->pgd, b->direct, b->levels, at, &size);
	// NUMA balancing takes PRESENT from entries for a while.
	if (!(entry & PRESENT) && !(entry & PROT_NONE && size <= 512))
		b->skip = (at | ((u64)size * PAGE - 1)) + 1;
	else if (entry & ACCESSED)
		b->bits[i / 64] |= 1ul << (i & 63);
	return 0;
}

// accessed processes one block.
SEC("syscall") int accessed(u32 *which)
{
	u32 k = *which;
	struct block *b = bpf_map_lookup_elem(&blocks, &k);

	if (!b)
		return 1;
	bpf_loop(BLOCK, used, &b, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
