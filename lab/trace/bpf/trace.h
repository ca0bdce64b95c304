// Code that the tracers' BPF programs share. Each tracer's programs are in a file next to this one. `make generate` compiles all of these files as
// one, so their names are in one scope, and CO-RE fits the object to the kernel that it is loaded into.
//
// The programs use only tracepoints with BTF and perf events, because not every kernel has kprobes. Every switch of the guest's threads
// comes through here, so each path is as short as it can be: no string, no stack unless it is asked for, one clock, one shared word.
#pragma once

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

typedef __u64 u64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;

// Only those fields of the kernel's structures that are read here. CO-RE ignores what follows ___ in a name.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block { unsigned s_dev; };
struct inode { u16 i_mode; unsigned long i_ino; struct super_block *i_sb; };
struct address_space { struct inode *host; };
struct folio { struct address_space *mapping; unsigned long index; };
struct file { struct inode *f_inode; unsigned int f_flags; };
struct fdtable { unsigned max_fds; struct file **fd; };
struct files_struct { struct fdtable *fdt; };
struct rq { u64 clock; };
struct cfs_rq { struct rq *rq; int throttle_count; };
struct sched_entity { struct cfs_rq *cfs_rq; u64 sum_exec_runtime; };
struct sched_info { unsigned long long run_delay, last_queued; };
struct signal_struct { struct { int counter; } live; };
struct task_delay_info { u64 blkio_delay; };
struct kernfs_node { u64 id; };
struct cgroup { struct kernfs_node *kn; };
struct cgroup_subsys_state { struct cgroup *cgroup; };
struct task_group { struct cgroup_subsys_state css; };
struct css_set { struct cgroup *dfl_cgrp; };
struct task_struct {
	int pid, tgid;
	int on_cpu;
	unsigned __state;
	char comm[16];
	struct task_struct *group_leader;
	struct css_set *cgroups;
	struct task_group *sched_task_group;
	unsigned in_memstall : 1;
	unsigned flags;
	unsigned long nvcsw, nivcsw;
	struct task_delay_info *delays;
	struct signal_struct *signal;
	unsigned in_iowait : 1;
	struct files_struct *files;
	struct sched_entity se;
	struct sched_info sched_info;
};
struct task_struct___throttled { _Bool throttled; }; // Linux 6.18: each thread is throttled on its own
struct pt_regs___x86 { unsigned long orig_ax, di, r10; };
struct pt_regs___arm { u64 regs[31], orig_x0; int syscallno; };
struct ns_common { unsigned inum; };
struct net { struct ns_common ns; };
typedef struct { struct net *net; } possible_net_t;
struct sock_common { u16 skc_num; unsigned char skc_state; possible_net_t skc_net; };
struct sock { struct sock_common __sk_common; u16 sk_protocol; };
struct bpf_iter_meta { u64 seq_num; };
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; };
#pragma clang attribute pop

// The context of a perf event. The registers are those of the architecture for which this is compiled.
struct registers {
#if defined(__TARGET_ARCH_x86)
	u64 before[16], ip, after[4];
#elif defined(__TARGET_ARCH_arm64)
	u64 before[32], ip, after[1];
#endif
};
struct bpf_perf_event_data { struct registers regs; u64 period, addr; };

// The roles of notebook.Role…, in the order of package trace. A ruler starts launchers. What a launcher starts is a trial: the guest's
// work or, for the launcher of a clock, the load that asks a service.
enum { WORK, VCPU, IO, EMULATOR, ROLES, RULER = ROLES, CLOCK, LAUNCHER, CLOCK_LAUNCHER };
enum { UNKNOWN, NEW, RUNS, WAITS, READY, THROTTLED };
// What a thread waits for. BY_FD: it depends on what the file is.
enum { OTHER, BLOCK, NETWORK, FUTEX, SLEEP, MEMORY, REASONS, BY_FD = 7, REASON_ROWS };
// Rows of spread. OFF + reason is a wait for the reason.
enum { ON, RUNQ, PREEMPTED, THROTTLE, OFF, KINDS = OFF + REASON_ROWS };
// Columns of wall. IDLE + reason is time in which all threads waited, for the reason.
enum { RUN, CORE, THROTTLING, IDLE, WALLS = IDLE + REASON_ROWS };
enum { SWITCHES, WAITED, PREEMPTIONS, WAKEUPS, MIGRATIONS, CACHE, NODE, TASKS, COUNTS };

// Columns of own: what the kernel itself counts for each thread.
enum { RAN, DELAYED, VOLUNTARY, INVOLUNTARY, BLOCKED, OWN };

#define BUCKETS 40
#define SPANS 2 // the ruler warms up once before it measures, so the last span is the trial
#define MAX_CPUS 1024
#define SYSCALLS 512
#define TASK_DEAD 0x80 // state of a thread that leaves a core for the last time

// MASK bounds an index for the verifier, which forgets the result of a comparison. The compiler must not see that it is redundant.
#define MASK(index, most) asm volatile("%0 &= " #most : "+r"(index))

struct seat {
	u64 since;      // when the thread entered its state
	u64 ran;        // the thread's CPU time when it last left a core
	u64 delayed;    // the thread's time in run queues when it last left a core
	u64 call;       // system call and file descriptor of the last wait
	u64 blocked;    // the thread's waits for block devices when the trial began
	u32 id;         // of the thread; 0: the seat is free
	u32 cpu;        // on which the thread last ran, from 1; 0: none yet
	int stack;      // of the wait; negative: none
	u8 role, state, reason, file_reason;
	u8 shared;      // another thread with this place has one of the next seats
	u8 known;       // number of further short waits in the same call for which the same reason is assumed
	u8 assumed;     // the reason of this wait is assumed
	u16 number;     // of the seat
	u8 again;       // the pages that it read last had been taken from the cache before
	u8 again_call;  // the system call in which it did so: the lowest byte of its number
} __attribute__((aligned(64)));

// Each thread of the guest has a seat. It is found by the thread's id, which is cheaper than the kernel's storage for tasks. Few ids share a place.
#define SEATS 16384
#define RESERVED 0xffffffff // the id of a seat that is being made ready
#define PLACES 4
struct seat seats[SEATS];

static __always_inline struct seat *place(u32 id, u32 i)
{
	u32 n = id + i;
	MASK(n, 16383);
	return &seats[n];
}

// seat returns the seat of a thread; 0 if the thread is not one of the guest's.
static __always_inline struct seat *seat(u32 id)
{
	if (!id)
		return 0; // idle
	struct seat *a = place(id, 0);
	if (a->id == id)
		return a;
	if (!a->shared)
		return 0;
	for (int i = 1; i < PLACES; i++) {
		a = place(id, i);
		if (a->id == id)
			return a;
	}
	return 0;
}

// The threads that exist when tracing begins: their ids and roles.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
} seeds SEC(".maps");

struct span {
	u64 wall[WALLS];
	u64 counts[ROLES][COUNTS];
	u64 own[ROLES][OWN];
	u64 sums[ROLES][KINDS];
	u64 spread[ROLES][KINDS][BUCKETS];
};
struct sums {
	u64 lost;
	struct span span[SPANS];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sums);
} all SEC(".maps");

// What to observe, set by userspace before it attaches the programs, and the state of the observation.
struct look {
	u64 zero;  // the clock when tracing began, so that times are short
	u32 cores; // of the guest
	u32 follow; // roles whose threads count for wall, one bit for each
	u32 stacks;
	u32 events; // each switch is traced; otherwise a thread's own counters are read when it ends
	u32 gather; // see the program gather
	u32 seeded; // number of existing threads that were found
	u32 open;  // a trial is under way
	u32 spans; // number of trials begun
	u32 main;  // id of the trial's process
	u32 dying; // the process has ended, and its ruler has not run since
	u32 each;  // gather what each thread did, and behind whom it waited
	u32 unified; // cgroups are told apart by their place in version 2
	u32 queues; // the kernel throttles whole queues, not threads
	u32 net; // the network namespace of the target's services; 0: it has none
	u64 begin, end;
	u64 died;   // when the trial's process ended
	u64 offset; // from the run queues' clock to CLOCK_MONOTONIC
	u64 synced; // when offset was determined, by the run queues' clock
} look __attribute__((aligned(64)));

// What one thread did, in ns, by the rows of spread. Gathered only if look.each.
struct each {
	u64 took[KINDS];
	u64 base; // the CPU time that the scheduler had counted when it began
};
struct each eaches[SEATS];

// each returns what the thread of a seat did.
static __always_inline struct each *each(struct seat *a)
{
	u32 n = a->number;
	MASK(n, 16383);
	return &eaches[n];
}

// new_seat gives a thread an empty seat; it returns 0 if there is no room.
static __always_inline struct seat *new_seat(u32 id, u32 role)
{
	for (int i = 0; i < PLACES; i++) {
		struct seat *a = place(id, i);
		if (__sync_val_compare_and_swap(&a->id, 0, RESERVED))
			continue;
		a->since = a->ran = a->delayed = a->call = 0;
		a->cpu = a->state = a->reason = a->known = a->assumed = a->again = 0;
		a->stack = -1;
		a->role = role;
		a->number = (id + i) & (SEATS - 1);
		if (look.each)
			__builtin_memset(each(a), 0, sizeof(struct each));
		if (i)
			place(id, 0)->shared = 1;
		__sync_lock_test_and_set(&a->id, id); // from here on others find it
		return a;
	}
	return 0;
}

// throttles_threads reports whether the kernel throttles each thread by itself. Older ones throttle a queue with all threads in it.
static __always_inline _Bool throttles_threads(void)
{
	return bpf_core_field_exists(((struct task_struct___throttled *)0)->throttled);
}

#define TWO(n) n, n
#define FOUR(n) TWO(n), TWO(n)
#define EIGHT(n) FOUR(n), FOUR(n)
#define SIXTEEN(n) EIGHT(n), EIGHT(n)
#define THIRTYTWO(n) SIXTEEN(n), SIXTEEN(n)
static const u8 log2_of[256] = {0, 0, TWO(1), FOUR(2), EIGHT(3), SIXTEEN(4), THIRTYTWO(5), THIRTYTWO(6), THIRTYTWO(6),
	THIRTYTWO(7), THIRTYTWO(7), THIRTYTWO(7), THIRTYTWO(7)};

static __always_inline u32 log2of(u64 v)
{
	u32 r = 0;
	if (v >> 32) { v >>= 32; r = 32; }
	if (v >> 16) { v >>= 16; r += 16; }
	if (v >> 8) { v >>= 8; r += 8; }
	r += log2_of[v & 255];
	return r < BUCKETS ? r : BUCKETS - 1;
}

// span returns this CPU's part of the current span; 0 while no trial is under way.
static __always_inline struct span *span(struct sums *s)
{
	struct span *p = 0;

	if (look.open)
		p = &s->span[(look.spans - 1) % SPANS];
	asm volatile("" : "+r"(p)); // otherwise the compiler tests look.open again instead of p, which verifiers before Linux 6.3 do not follow
	return p;
}

static __always_inline struct sums *mine(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&all, &zero);
}

static __always_inline void took(struct span *p, u32 role, u32 kind, u64 ns)
{
	if (!p || role >= ROLES)
		return;
	MASK(role, 3);
	p->sums[role][kind] += ns;
	p->spread[role][kind][log2of(ns)]++;
}

static __always_inline void count(struct span *p, u32 role, u32 what, u64 n)
{
	if (!p || role >= ROLES)
		return;
	MASK(role, 3);
	p->counts[role][what] += n;
}

// spent adds to what a thread did.
static __always_inline void spent(struct span *p, struct seat *a, u32 kind, u64 ns)
{
	took(p, a->role, kind, ns);
	if (look.each && p && kind < KINDS)
		each(a)->took[kind] += ns;
}

// passed is the time from one reading of a clock until another, which may be of another clock and lie some microseconds before.
static __always_inline u64 passed(u64 since, u64 now) { return now > since ? now - since : 0; }

// file_of returns the open file of a descriptor; 0: there is none.
static __always_inline struct file *file_of(struct task_struct *t, u64 fd)
{
	struct fdtable *fdt = t->files->fdt;
	struct file *file = 0;
	if (fdt && fd < fdt->max_fds)
		bpf_probe_read_kernel(&file, sizeof file, &fdt->fd[fd]);
	return file;
}

// reason_by_file returns NETWORK for a socket, BLOCK for a file or a block device, and OTHER for anything else.
static __always_inline u32 reason_by_file(struct task_struct *t, u64 fd)
{
	struct file *file = file_of(t, fd);
	struct inode *inode = 0;
	u16 mode = 0;
	bpf_probe_read_kernel(&inode, sizeof inode, &file->f_inode);
	bpf_probe_read_kernel(&mode, sizeof mode, &inode->i_mode);
	switch (mode & 0170000) {
	case 0140000: return NETWORK;              // socket
	case 0100000: case 0060000: return BLOCK;  // file, block device
	}
	return OTHER;
}

// call_of returns the number of the system call that a thread is in, or a large number, and the first argument of it.
static __always_inline u64 call_of(struct task_struct *t, u64 *argument)
{
	struct pt_regs___x86 *x86 = (void *)bpf_task_pt_regs((void *)t);
	struct pt_regs___arm *arm = (void *)x86;
	if (bpf_core_field_exists(x86->orig_ax)) {
		if (argument)
			*argument = x86->di;
		return x86->orig_ax;
	}
	if (argument)
		*argument = arm->orig_x0; // the call's result overwrites regs[0]
	return arm->syscallno;
}

struct waited { u64 ns, count; };

char LICENSE[] SEC("license") = "GPL";
