// What a probe attaches to the kernel. `make generate` compiles it; CO-RE fits it to the kernel that it is loaded into.
//
// Tracepoints with BTF and perf events only, for not every kernel has kprobes. Every switch of the guest's threads comes through
// here, so each path is as short as it can be: no string, no stack unless it is asked for, one clock, one shared word.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

typedef __u64 u64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;

// Of the kernel's structures only what is read; the names after ___ are flavours that CO-RE takes off.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct inode { u16 i_mode; };
struct file { struct inode *f_inode; };
struct fdtable { unsigned max_fds; struct file **fd; };
struct files_struct { struct fdtable *fdt; };
struct rq { u64 clock; };
struct cfs_rq { struct rq *rq; int throttle_count; };
struct sched_entity { struct cfs_rq *cfs_rq; u64 sum_exec_runtime; };
struct sched_info { unsigned long long run_delay, last_queued; };
struct signal_struct { struct { int counter; } live; };
struct task_delay_info { u64 blkio_delay; };
struct task_struct {
	int pid, tgid;
	unsigned long nvcsw, nivcsw;
	struct task_delay_info *delays;
	struct signal_struct *signal;
	unsigned in_iowait : 1;
	struct files_struct *files;
	struct sched_entity se;
	struct sched_info sched_info;
};
struct task_struct___throttled { _Bool throttled; }; // Linux 6.18: each thread is throttled on its own
struct pt_regs___x86 { unsigned long orig_ax, di; };
struct pt_regs___arm { u64 regs[31]; int syscallno; };
struct gendisk { int major, first_minor; };
struct request_queue { struct gendisk *disk; };
struct request { struct request_queue *q; u32 cmd_flags, __data_len; };
struct vm_area_struct { struct file *vm_file; };
struct bpf_iter_meta { u64 seq_num; };
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; };
#pragma clang attribute pop

// A perf event's context. The registers are those of the machine that it is compiled for.
struct registers {
#if defined(__TARGET_ARCH_x86)
	u64 before[16], ip, after[4];
#elif defined(__TARGET_ARCH_arm64)
	u64 before[32], ip, after[1];
#endif
};
struct bpf_perf_event_data { struct registers regs; u64 period, addr; };

// As notebook.Role…; userspace has the same list.
// A ruler starts launchers, and what a launcher starts is a trial: the guest's work, or with a clock's what asks a service.
enum { WORK, VCPU, IO, EMULATOR, ROLES, RULER = ROLES, CLOCK, LAUNCHER, CLOCK_LAUNCHER };
enum { UNKNOWN, NEW, RUNS, WAITS, READY, THROTTLED };
// What a thread waits for; BY_FD is decided by what the file is.
enum { OTHER, BLOCK, NETWORK, FUTEX, SLEEP, REASONS, BY_FD = 7, REASON_ROWS };
// Rows of spread; a wait for a reason is OFF + reason.
enum { ON, RUNQ, PREEMPTED, THROTTLE, OFF, KINDS = OFF + REASON_ROWS };
// Columns of wall; idle for a reason is IDLE + reason.
enum { RUN, CORE, THROTTLING, IDLE, WALLS = IDLE + REASON_ROWS };
enum { SWITCHES, WAITED, PREEMPTIONS, WAKEUPS, MIGRATIONS, CACHE, NODE, TASKS, COUNTS };

// Columns of own: what the kernel itself keeps of each thread.
enum { RAN, DELAYED, VOLUNTARY, INVOLUNTARY, BLOCKED, OWN };

#define BUCKETS 40
#define SPANS 2 // the ruler warms up once before it measures: the last span is the trial
#define MAX_CPUS 1024
#define SYSCALLS 512
#define TASK_DEAD 0x80 // the state in which a thread is switched from for the last time

// MASK bounds an index for the verifier, which loses what a comparison said of it; the compiler must not know why it is there.
#define MASK(index, most) asm volatile("%0 &= " #most : "+r"(index))

struct seat {
	u64 since;      // of its state
	u64 ran;        // CPU time that it had used when it last left a core
	u64 delayed;    // time that it had stood in run queues then
	u64 call;       // system call and file descriptor that it last waited in
	u64 blocked;    // time that it had waited for block devices when the trial began
	u32 id;         // the thread's; 0: nobody's
	u32 cpu;        // where it last ran, from 1; 0: nowhere yet
	int stack;      // of its wait; negative: none
	u8 role, state, reason, file_reason;
	u8 shared;      // a thread whose place this is as well sits in one of the next
	u8 known;       // for so many more short waits in the same call the reason is taken to be the same
	u8 assumed;     // it was for this one
} __attribute__((aligned(64)));

// A seat is a thread's. It is found by the thread's id, which costs less than the kernel's storage for tasks; few ids share a place.
#define SEATS 16384
#define PLACES 4
struct seat seats[SEATS];

static __always_inline struct seat *place(u32 id, u32 i)
{
	u32 n = id + i;
	MASK(n, 16383);
	return &seats[n];
}

// seat is the thread's, 0 if it is none of the guest's.
static __always_inline struct seat *seat(u32 id)
{
	struct seat *a = place(id, 0);
	if (a->id == id)
		return id ? a : 0;
	if (!a->shared)
		return 0;
	for (int i = 1; i < PLACES; i++) {
		a = place(id, i);
		if (a->id == id)
			return a;
	}
	return 0;
}

// new_seat gives the thread an empty one; 0 where there is no room.
static __always_inline struct seat *new_seat(u32 id, u32 role)
{
	for (int i = 0; i < PLACES; i++) {
		struct seat *a = place(id, i);
		if (__sync_val_compare_and_swap(&a->id, 0, id))
			continue;
		a->since = a->ran = a->delayed = a->call = 0;
		a->cpu = a->state = a->reason = a->known = a->assumed = 0;
		a->stack = -1;
		a->role = role;
		if (i)
			place(id, 0)->shared = 1;
		return a;
	}
	return 0;
}

// Threads that are there when the look begins: their ids and roles.
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

// Set by userspace before it attaches; the rest of it is the look's state.
struct look {
	u64 zero;  // the clock at the beginning, so that times are short
	u32 cores; // that the guest has
	u32 follow; // the roles whose threads the wall is made of, a bit each
	u32 stacks;
	u32 events; // each switch is traced; else a thread's own counters are read when it ends
	u32 gather; // what the program of that name does
	u32 seeded; // threads found
	u32 open;  // a trial is under way
	u32 spans; // begun so far
	u32 main;  // the trial's process
	u32 dying; // it has ended, and its ruler not yet seen it
	u64 begin, end;
	u64 died;   // when the trial's process ended
	u64 offset; // from the run queues' clock to CLOCK_MONOTONIC
	u64 synced; // when that was found out, by the run queues' clock
} look __attribute__((aligned(64)));

// How many of the guest's threads run, are ready, are throttled, and since when: 10 bits each, and 34 of units of 1024 ns,
// which is five hours. One word, so that it is changed at once; on a line of its own, for all CPUs write to it.
u64 state[8] __attribute__((aligned(64)));

u8 reasons[SYSCALLS];    // by the syscall's number
u8 cache_of[MAX_CPUS];   // by CPU: last-level cache
u8 node_of[MAX_CPUS];    // and NUMA node

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

// span is this CPU's part of the current one; none while no trial is under way.
static __always_inline struct span *span(struct sums *s)
{
	struct span *p = 0;

	if (look.open)
		p = &s->span[(look.spans - 1) % SPANS];
	asm volatile("" : "+r"(p)); // or the compiler tests what made it in its place, which verifiers before Linux 6.3 do not follow
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

#define ONE_RUNS 1ull
#define ONE_READY (1ull << 10)
#define ONE_THROTTLED (1ull << 20)
#define NUMBERS ((1ull << 30) - 1)

// charge books time in which so many threads of the guest ran, were ready and were throttled. The share of a core that could have been
// used and was not goes to what kept the thread from it. sign is -1 to take it back.
static __always_inline void charge(struct span *p, u64 time, u64 numbers, u32 reason, int sign)
{
	u64 runs = numbers & 1023, ready = numbers >> 10 & 1023, throttled = numbers >> 20 & 1023;
	u64 able = runs + ready + throttled, cores = look.cores;
	if (!able) {
		if (reason < REASONS) {
			MASK(reason, 7);
			p->wall[IDLE + reason] += sign * time;
		}
		return;
	}
	u64 share = able < cores ? able : cores;
	if (runs >= share) {
		p->wall[RUN] += sign * time;
		return;
	}
	u64 run = time * runs / share, rest = time - run;
	u64 core = rest * ready / (ready + throttled);
	p->wall[RUN] += sign * run;
	p->wall[CORE] += sign * core;
	p->wall[THROTTLING] += sign * (rest - core);
}

// account charges the time since the last change to what the guest did meanwhile, and changes the numbers by delta. A thread that
// enters a core now was ready since woken, which nobody was told of then; 0: there is none. For the time before the last change, in which
// others were switched, its part is worked out with the numbers of now.
static __always_inline void account(struct sums *s, struct span *p, u64 now, u64 delta, u32 reason, u64 woken)
{
	u64 t = (now - look.zero) >> 10;
	for (int i = 0; i < 16; i++) {
		u64 old = *(volatile u64 *)&state[0];
		u64 from = old >> 30;
		u64 to = t > from ? t : from;
		u64 new = to << 30 | ((old + delta) & NUMBERS);
		if (__sync_val_compare_and_swap(&state[0], old, new) != old)
			continue;
		if (!p)
			return;
		u64 begin = (look.begin - look.zero) >> 10;
		if (from < begin)
			from = begin;
		if (!woken) {
			if (to > from)
				charge(p, to - from, old, reason, 1);
			return;
		}
		u64 w = (woken - look.zero) >> 10;
		if (w > to)
			w = to;
		if (w < begin)
			w = begin;
		if (w >= from) {
			charge(p, w - from, old, reason, 1);
			if (to > w)
				charge(p, to - w, old + ONE_READY, reason, 1);
			return;
		}
		if (to > from)
			charge(p, to - from, old + ONE_READY, reason, 1);
		if (look.cores > 1 && old & 1023) {
			charge(p, from - w, old, reason, -1);
			charge(p, from - w, old + ONE_READY, reason, 1);
		}
		return;
	}
	s->lost++;
}

static __always_inline u32 reason_by_file(struct task_struct *t, u64 fd)
{
	struct fdtable *fdt = t->files->fdt;
	struct file *file = 0;
	struct inode *inode = 0;
	u16 mode = 0;
	if (!fdt || fd >= fdt->max_fds)
		return OTHER;
	bpf_probe_read_kernel(&file, sizeof file, &fdt->fd[fd]);
	bpf_probe_read_kernel(&inode, sizeof inode, &file->f_inode);
	bpf_probe_read_kernel(&mode, sizeof mode, &inode->i_mode);
	switch (mode & 0170000) {
	case 0140000: return NETWORK;              // socket
	case 0100000: case 0060000: return BLOCK;  // file, block device
	}
	return OTHER;
}

// What a file is takes three reads to find out. A thread that waits in the same call for the same descriptor again is taken to wait for
// the same, so many times at most, and only for short waits: after a long one the reads are made, for whoever then waits for it.
#define ASSUMED 63
#define SHORT 50000 // ns

// reason is what a thread that does not run waits for.
static __always_inline u32 reason(struct task_struct *t, struct seat *a, _Bool may_assume)
{
	a->assumed = 0;
	if (BPF_CORE_READ_BITFIELD(t, in_iowait))
		return BLOCK;
	struct pt_regs___x86 *x86 = (void *)bpf_task_pt_regs((void *)t);
	u64 nr, fd;
	if (bpf_core_field_exists(x86->orig_ax)) {
		nr = x86->orig_ax;
		fd = x86->di;
	} else {
		struct pt_regs___arm *arm = (void *)x86;
		nr = arm->syscallno;
		fd = arm->regs[0];
	}
	if (nr >= SYSCALLS)
		return OTHER; // a page fault, or nothing of its own
	u32 r = reasons[nr & (SYSCALLS - 1)];
	if (r != BY_FD)
		return r;
	u64 call = nr << 32 | (u32)fd;
	if (may_assume && a->known && a->call == call) {
		a->known--;
		a->assumed = 1;
		return a->file_reason;
	}
	a->call = call;
	a->known = ASSUMED;
	a->file_reason = reason_by_file(t, fd);
	return a->file_reason;
}

static __always_inline _Bool is_throttled(struct task_struct *t)
{
	struct task_struct___throttled *own = (void *)t;
	if (bpf_core_field_exists(own->throttled))
		return own->throttled;
	return BPF_CORE_READ(t, se.cfs_rq, throttle_count) > 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 4096);
	__uint(key_size, sizeof(u32));
	__uint(value_size, 32 * sizeof(u64));
} stacks SEC(".maps");

struct waited { u64 ns, count; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct waited);
} waits SEC(".maps");

static __always_inline void waited_at(struct sums *s, int stack, u64 ns)
{
	if (stack < 0)
		return;
	u32 id = stack;
	struct waited *w = bpf_map_lookup_elem(&waits, &id);
	if (w) {
		__sync_fetch_and_add(&w->ns, ns);
		__sync_fetch_and_add(&w->count, 1);
		return;
	}
	struct waited first = {ns, 1};
	if (bpf_map_update_elem(&waits, &id, &first, BPF_NOEXIST))
		s->lost++;
}

// repair makes good an event that did not come: a thread leaves a core that it was not seen to enter. (Some kernels show no switch
// from a process that they hide.) The scheduler itself knows for how long it ran; that much is moved in the account.
static __always_inline u64 repair(struct sums *s, struct span *p, struct seat *a, u64 now, u64 ran)
{
	u32 booked = a->state == READY ? CORE : a->state == THROTTLED ? THROTTLING : IDLE + a->reason;
	u64 delta = a->state == READY ? -ONE_READY : a->state == THROTTLED ? -ONE_THROTTLED : 0;
	u64 numbers = *(volatile u64 *)&state[0];
	u64 able = (numbers & 1023) + (numbers >> 10 & 1023) + (numbers >> 20 & 1023);
	s->lost++;
	if (!p || booked >= WALLS || a->state == UNKNOWN)
		return delta;
	u64 before = p->wall[booked];
	account(s, p, now, 0, a->reason, 0);
	if (ran > now - a->since)
		ran = now - a->since;
	u64 share = able > look.cores ? look.cores : able;
	u64 time = (share > 1 ? ran / share : ran) >> 10, just = p->wall[booked] - before;
	if (time > just) // others ran meanwhile, and it was booked to them
		time = just;
	p->wall[booked] -= time;
	p->wall[RUN] += time;
	return delta;
}

// closed ends the trial's span; what comes after it is not of the trial.
static __always_inline void closed(struct sums *s, u64 now)
{
	u64 changed = (state[0] >> 30 << 10) + look.zero;
	if (now < changed)
		now = changed;
	account(s, span(s), now, 0, OTHER, 0);
	look.end = now;
	look.open = 0;
	look.dying = 0;
}

// How often the run queues' clock is set by CLOCK_MONOTONIC, in ns. It is read for nothing, but is no clock for userspace and goes astray
// by some microseconds in this time.
#define SYNC 200000000

// leaves does what is to be done for a thread that leaves its core; it gives the change of the guest's numbers.
static __always_inline u64 leaves(void *ctx, struct sums *s, struct span *p, struct seat *a, struct task_struct *t, u64 now, _Bool waits, _Bool dead, u32 *why)
{
	u32 role = a->role;
	_Bool mine = look.follow >> role & 1;
	u64 total = t->se.sum_exec_runtime, delta = 0;
	if (a->state == RUNS) {
		if (!dead)
			took(p, role, ON, now - a->since);
		else if (p && role < ROLES && now > a->since) { // its last slice is in the distribution since it began to end
			MASK(role, 3);
			p->sums[role][ON] += now - a->since;
		}
		if (mine)
			delta -= ONE_RUNS;
	} else if (a->state != UNKNOWN) {
		u64 ran = total - a->ran, off = now - a->since; // and for the rest of that time it was at what it had left a core for
		took(p, role, ON, ran);
		off -= ran < off ? ran : off;
		if (a->state == THROTTLED)
			took(p, role, THROTTLE, off);
		else if (a->state == READY)
			took(p, role, PREEMPTED, off);
		else if (a->state == WAITS) {
			u32 r = a->reason;
			if (r < REASONS) {
				MASK(r, 7);
				took(p, role, OFF + r, off);
			}
		}
		if (mine)
			delta += repair(s, p, a, now, ran);
		else
			s->lost++;
	}
	a->ran = total;
	a->delayed = t->sched_info.run_delay;
	count(p, role, SWITCHES, 1);
	a->since = now;
	a->cpu = bpf_get_smp_processor_id() + 1;
	if (waits) {
		a->state = WAITS;
		a->stack = -1;
		if (!dead) {
			a->reason = *why = reason(t, a, 1);
			count(p, role, WAITED, 1);
			if (look.stacks && mine)
				a->stack = bpf_get_stackid(ctx, &stacks, BPF_F_FAST_STACK_CMP);
		}
		return delta;
	}
	count(p, role, PREEMPTIONS, 1);
	if (is_throttled(t)) {
		a->state = THROTTLED;
		return mine ? delta + ONE_THROTTLED : delta;
	}
	a->state = READY;
	return mine ? delta + ONE_READY : delta;
}

// enters does what is to be done for a thread that enters a core. What it did since it left one is only seen now: the scheduler itself
// keeps when it was woken, and for how long it stood in queues that it was taken out of again.
static __always_inline u64 enters(struct sums *s, struct span *p, struct seat *b, struct task_struct *t, u64 now, u64 *woken, u32 *why)
{
	u32 role = b->role, cpu = bpf_get_smp_processor_id() + 1;
	u64 delta = 0, off = now - b->since, queued = t->sched_info.last_queued;
	_Bool mine = look.follow >> role & 1;
	if (b->state == THROTTLED) {
		took(p, role, THROTTLE, off);
		if (mine)
			delta -= ONE_THROTTLED;
	} else if (b->state == READY) {
		took(p, role, PREEMPTED, off);
		if (mine)
			delta -= ONE_READY;
	} else if (b->state != RUNS) {
		u64 ready = t->sched_info.run_delay - b->delayed;
		if (queued && now > queued + look.offset)
			ready += now - queued - look.offset;
		if (b->state != UNKNOWN && ready > off)
			ready = off;
		if (b->state == WAITS) {
			if (b->assumed && off - ready > SHORT)
				b->reason = reason(t, b, 0);
			u32 r = b->reason;
			*why = r;
			if (r < REASONS) {
				MASK(r, 7);
				took(p, role, OFF + r, off - ready);
			}
			if (b->stack >= 0 && p)
				waited_at(s, b->stack, off - ready);
			count(p, role, WAKEUPS, 1);
		}
		took(p, role, RUNQ, ready);
		if (mine)
			*woken = now - ready;
	}
	if (mine)
		delta += ONE_RUNS;
	if (b->cpu && b->cpu != cpu) {
		u32 old = (b->cpu - 1) & (MAX_CPUS - 1), new = (cpu - 1) & (MAX_CPUS - 1);
		count(p, role, MIGRATIONS, 1);
		if (cache_of[old] != cache_of[new])
			count(p, role, CACHE, 1);
		if (node_of[old] != node_of[new])
			count(p, role, NODE, 1);
	}
	b->state = RUNS;
	b->since = now;
	return delta;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, _Bool preempt, struct task_struct *prev, struct task_struct *next, unsigned prev_state)
{
	struct seat *a = seat(prev->pid);
	struct seat *b = seat(next->pid);
	asm volatile("" : : "r"(a)); // or the compiler makes one test of two pointers, which the verifier refuses
	if (!a) {
		asm volatile("" : : "r"(b));
		if (!b)
			return 0;
	}
	struct sums *s = mine();
	if (!s)
		return 0;
	// The scheduler has just read its clock; to read another costs more than all that follows.
	u64 now = prev->se.cfs_rq->rq->clock;
	if (now - look.synced > SYNC) {
		look.offset = bpf_ktime_get_ns() - now;
		look.synced = now;
	}
	now += look.offset;
	struct span *p = span(s);
	u64 delta = 0, woken = 0;
	u32 why = OTHER;
	_Bool followed = 0;
	if (a && a->role < ROLES) { // rulers are only waited for
		delta += leaves(ctx, s, p, a, prev, now, prev_state && !preempt, prev_state & TASK_DEAD, &why);
		followed = look.follow >> a->role & 1;
	}
	if (b && b->role < ROLES) {
		delta += enters(s, p, b, next, now, &woken, &why);
		followed |= look.follow >> b->role & 1;
	}
	// Where one takes another's place and every core is used, the next change charges this time too.
	if (followed && (delta || (*(volatile u64 *)&state[0] & 1023) < look.cores))
		account(s, p, now, delta, why, woken);
	if (a && prev_state & TASK_DEAD)
		a->id = 0;
	if (b && b->role >= ROLES && look.dying && look.open) {
		u64 told = next->sched_info.last_queued + look.offset;
		if (told >= look.died && told <= now) // not woken before
			closed(s, told);
	}
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	struct seat *a = seat(parent->pid);
	if (!a)
		return 0;
	u32 role = a->role;
	u64 now = bpf_ktime_get_ns();
	if ((role == RULER || role == CLOCK) && parent->tgid != child->tgid) {
		if (!new_seat(child->pid, role + LAUNCHER - RULER)) {
			struct sums *s = mine();
			if (s)
				s->lost++;
		}
		return 0;
	}
	if ((role == LAUNCHER || role == CLOCK_LAUNCHER) && parent->tgid != child->tgid) {
		look.main = child->tgid;
		look.dying = 0;
		look.begin = now;
		look.spans++;
		look.open = 1;
		if (role == CLOCK_LAUNCHER)
			return 0; // what asks a service is not the service
		role = WORK;
	}
	struct sums *s = mine();
	if (!s)
		return 0;
	struct seat *c = new_seat(child->pid, role);
	if (!c) {
		s->lost++;
		return 0;
	}
	c->state = NEW;
	if (look.events)
		c->since = now;
	count(span(s), role, TASKS, 1);
	return 0;
}

// based notes what the thread's counters are at the beginning, in the places of what only a switch needs.
static __always_inline void based(struct seat *a, struct task_struct *t)
{
	a->ran = t->se.sum_exec_runtime;
	a->delayed = t->sched_info.run_delay;
	a->since = t->nvcsw;
	a->call = t->nivcsw;
	a->blocked = 0;
	if (bpf_core_field_exists(t->delays) && t->delays)
		a->blocked = t->delays->blkio_delay;
}

// owned adds what they have counted since.
static __always_inline void owned(struct span *p, struct seat *a, struct task_struct *t)
{
	u32 role = a->role;
	if (!p || role >= ROLES)
		return;
	MASK(role, 3);
	u64 *own = p->own[role];
	own[RAN] += t->se.sum_exec_runtime - a->ran;
	own[DELAYED] += t->sched_info.run_delay - a->delayed;
	own[VOLUNTARY] += t->nvcsw - a->since;
	own[INVOLUNTARY] += t->nivcsw - a->call;
	if (bpf_core_field_exists(t->delays) && t->delays)
		own[BLOCKED] += t->delays->blkio_delay - a->blocked;
}

// A thread that executes a program takes its process's id if it was not the first there.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *t, int old)
{
	struct seat *a = seat(old);
	if (!a || t->pid == old)
		return 0;
	struct seat *b = new_seat(t->pid, a->role);
	if (b) {
		b->since = a->since;
		b->ran = a->ran;
		b->delayed = a->delayed;
		b->call = a->call;
		b->blocked = a->blocked;
		b->cpu = a->cpu;
		b->state = a->state;
	}
	a->id = 0;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct *t)
{
	// Its first thread may end long before its last, or give its place to one that executes another program.
	_Bool last = look.open && t->tgid == look.main && !t->signal->live.counter;
	if (last) {
		look.died = bpf_ktime_get_ns();
		look.dying = 1;
	}
	struct seat *a = seat(t->pid);
	struct sums *s = mine();
	if (look.events) {
		// Its ruler may end the span before it leaves its core, so its last slice is of now; what comes is added to it if there is time.
		if (a && s && a->state == RUNS) {
			u64 now = bpf_ktime_get_ns();
			took(span(s), a->role, ON, now > a->since ? now - a->since : 0);
			a->since = now;
		}
		return 0;
	}
	if (a && s) {
		owned(span(s), a, t);
		a->id = 0;
	}
	if (last) {
		look.end = look.died;
		look.open = 0;
	}
	return 0;
}

// seed gives the threads that are there already their seats.
SEC("iter/task")
int seed(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	if (!t)
		return 0;
	u32 pid = t->pid, *role = bpf_map_lookup_elem(&seeds, &pid);
	struct seat *a = role ? new_seat(pid, *role) : 0;
	if (!a)
		return 0;
	if (look.events)
		a->delayed = t->sched_info.run_delay;
	else
		based(a, t);
	look.seeded++;
	return 0;
}

// gather begins the counters of the threads that are there anew, or adds what they have counted.
SEC("iter/task")
int gather(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct sums *s = mine();
	if (!t || !s)
		return 0;
	struct seat *a = seat(t->pid);
	if (!a)
		return 0;
	if (look.gather)
		owned(&s->span[(look.spans - 1) % SPANS], a, t);
	else
		based(a, t);
	return 0;
}

// Block devices: from the request's creation, in the context of the thread that asked, to its completion.

struct asked { u64 since; u32 role; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct asked);
} inflight SEC(".maps");

struct device { u32 major, minor, op, role; };
struct io { u64 n, bytes, ns, spread[BUCKETS]; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct device);
	__type(value, struct io);
} devices SEC(".maps");

static __always_inline int asks(struct request *rq)
{
	struct seat *a = seat(bpf_get_current_pid_tgid());
	if (!a || !look.open || a->role >= ROLES)
		return 0;
	u64 key = (u64)rq;
	struct asked k = {bpf_ktime_get_ns(), a->role};
	if (bpf_map_update_elem(&inflight, &key, &k, BPF_ANY)) {
		struct sums *s = mine();
		if (s)
			s->lost++;
	}
	return 0;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(block_start, struct request *rq) { return asks(rq); }

// Before Linux 6.5: a request that another thread hands on to the device is not seen as its asker's.
SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_issue, struct request *rq) { return asks(rq); }

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_end, struct request *rq, u8 status, u32 bytes)
{
	u64 key = (u64)rq;
	struct asked *k = bpf_map_lookup_elem(&inflight, &key);
	if (!k)
		return 0;
	u64 ns = bpf_ktime_get_ns() - k->since;
	struct device d = {.op = rq->cmd_flags & 0xff, .role = k->role};
	struct gendisk *disk = rq->q->disk;
	if (disk) {
		d.major = disk->major;
		d.minor = disk->first_minor;
	}
	bpf_map_delete_elem(&inflight, &key);
	struct io *io = bpf_map_lookup_elem(&devices, &d);
	if (!io) {
		static const struct io none;
		bpf_map_update_elem(&devices, &d, &none, BPF_NOEXIST);
		io = bpf_map_lookup_elem(&devices, &d);
		if (!io) {
			struct sums *s = mine();
			if (s)
				s->lost++;
			return 0;
		}
	}
	u32 bucket = log2of(ns);
	__sync_fetch_and_add(&io->n, 1);
	__sync_fetch_and_add(&io->bytes, bytes);
	__sync_fetch_and_add(&io->ns, ns);
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&io->spread[bucket], 1);
	return 0;
}

// Samples of what runs: in the kernel by address.

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
		ip = 0; // its own code
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

// Samples of page faults: whether the memory is a file's.

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

// Exits of virtual CPUs: classic tracepoints, for only those say the reason in a field. Where it stands is the format's to say.

u32 reason_at; // offset of exit_reason in kvm_exit's record

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

char LICENSE[] SEC("license") = "GPL";
