// The switches of the guest's threads.
#include "trace.h"

// How many of the guest's threads run, are ready and are throttled, in 10 bits each, and since when, in 34 bits of units of 1024 ns (five
// hours). It is one word, so that it changes at once, and it has a cache line of its own, because all CPUs write to it.
u64 state[8] __attribute__((aligned(64)));

u8 reasons[SYSCALLS];    // by the number of the system call
u8 cache_of[MAX_CPUS];   // last-level cache, by CPU
u8 node_of[MAX_CPUS];    // NUMA node, by CPU

#define ONE_RUNS 1ull
#define ONE_READY (1ull << 10)
#define ONE_THROTTLED (1ull << 20)
#define NUMBERS ((1ull << 30) - 1)

// charge adds a time to wall, in which the given numbers of the guest's threads ran, were ready and were throttled. The share of a core that
// could have been used and was not is charged to what kept the thread from using it. With sign -1 the time is taken back.
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
	if (throttled && !throttles_threads()) // the others wait in the same queue, and no event shows it
		core = 0;
	p->wall[RUN] += sign * run;
	p->wall[CORE] += sign * core;
	p->wall[THROTTLING] += sign * (rest - core);
}

// account charges the time since the last change to what the guest did in it, and changes the numbers by delta. If woken is not 0, a
// thread enters a core now that has been ready since woken, which no event reported. For the time before the last change, in which other
// threads were switched, its part is computed with the present numbers.
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

// To find out what a file is takes three reads. If a thread waits in the same call for the same descriptor again, the same reason is
// assumed, at most ASSUMED times and only for short waits. After a long wait the reads are made.
#define ASSUMED 63
#define SHORT 50000 // ns

// reason returns what a thread that does not run waits for.
static __always_inline u32 reason(struct task_struct *t, struct seat *a, _Bool may_assume)
{
	a->assumed = 0;
	if (look.each && bpf_core_field_exists(t->in_memstall) && BPF_CORE_READ_BITFIELD(t, in_memstall))
		return MEMORY; // pages that it had and that were taken from it, or pages that are being made free for it
	if (BPF_CORE_READ_BITFIELD(t, in_iowait))
		return a->again && a->again_call == (u8)call_of(t, 0) ? MEMORY : BLOCK;
	u64 fd = 0, nr = call_of(t, &fd);
	if (nr >= SYSCALLS)
		return OTHER; // a page fault, or no system call
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

// How often the run queues' clock is compared with CLOCK_MONOTONIC, in ns. Reading it costs nothing, but userspace does not have it, and in
// this time it drifts by some microseconds.
#define SYNC 200000000

// sync determines the offset from the run queues' clock to CLOCK_MONOTONIC now and then.
static __always_inline void sync(u64 now)
{
	if ((long long)(now - look.synced) > SYNC) {
		look.offset = bpf_ktime_get_ns() - now;
		look.synced = now;
	}
}

// repair makes up for an event that did not come: a thread leaves a core that it was not seen to enter. (Some kernels show no switch
// from a process that they hide.) The scheduler knows for how long the thread ran, and that much time is moved to running.
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
	if (time > just) // other threads ran in that time, and it was charged to them
		time = just;
	p->wall[booked] -= time;
	p->wall[RUN] += time;
	return delta;
}

// closed ends the trial's span.
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

// leaves records that a thread leaves its core. It returns the change of the guest's numbers.
static __always_inline u64 leaves(void *ctx, struct sums *s, struct span *p, struct seat *a, struct task_struct *t, u64 now, _Bool waits, _Bool dead, u32 *why)
{
	u32 role = a->role;
	_Bool mine = look.follow >> role & 1;
	u64 total = t->se.sum_exec_runtime, delta = 0;
	if (a->state == RUNS) {
		if (!dead || look.each)
			spent(p, a, ON, passed(a->since, now));
		else if (p && role < ROLES && now > a->since) { // exited has counted its time on the core in the distribution
			MASK(role, 3);
			p->sums[role][ON] += now - a->since;
		}
		if (mine)
			delta -= ONE_RUNS;
	} else if (a->state != UNKNOWN) {
		u64 ran = total - a->ran, off = passed(a->since, now); // for the rest of that time it was in the state in which it had left a core
		spent(p, a, ON, ran);
		off -= ran < off ? ran : off;
		if (a->state == THROTTLED)
			spent(p, a, THROTTLE, off);
		else if (a->state == READY)
			spent(p, a, PREEMPTED, off);
		else if (a->state == WAITS) {
			u32 r = a->reason;
			if (r < REASONS) {
				MASK(r, 7);
				spent(p, a, OFF + r, off);
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

// enters records that a thread enters a core, and what it did since it left one. The scheduler has kept when the thread was woken, and for
// how long it was in run queues that it left again.
static __always_inline u64 enters(struct sums *s, struct span *p, struct seat *b, struct task_struct *t, u64 now, u64 *woken, u32 *why)
{
	u32 role = b->role, cpu = bpf_get_smp_processor_id() + 1;
	u64 delta = 0, off = passed(b->since, now), queued = t->sched_info.last_queued;
	_Bool mine = look.follow >> role & 1;
	if (b->state == THROTTLED) {
		spent(p, b, THROTTLE, off);
		if (mine)
			delta -= ONE_THROTTLED;
	} else if (b->state == READY) {
		spent(p, b, PREEMPTED, off);
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
			if (b->again && (r == MEMORY || r == BLOCK))
				b->again = 0;
			if (r < REASONS) {
				MASK(r, 7);
				spent(p, b, OFF + r, off - ready);
			}
			if (b->stack >= 0 && p)
				waited_at(s, b->stack, off - ready);
			count(p, role, WAKEUPS, 1);
		}
		spent(p, b, RUNQ, ready);
		if (mine)
			*woken = now - ready;
	}
	if (mine && b->state != RUNS) // it counts already if no event showed that it left
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
	asm volatile("" : : "r"(a)); // otherwise the compiler tests both pointers at once, which the verifier refuses
	if (!a) {
		asm volatile("" : : "r"(b));
		if (!b)
			return 0;
	}
	struct sums *s = mine();
	if (!s)
		return 0;
	// The scheduler has just read its clock. To read another one would cost more than all that follows.
	u64 now = prev->se.cfs_rq->rq->clock;
	sync(now);
	now += look.offset;
	struct span *p = span(s);
	u64 delta = 0, woken = 0;
	u32 why = OTHER;
	_Bool followed = 0;
	if (a && a->role < ROLES) { // rulers are followed only to find the end of a trial
		delta += leaves(ctx, s, p, a, prev, now, prev_state && !preempt, prev_state & TASK_DEAD, &why);
		followed = look.follow >> a->role & 1;
	}
	if (b && b->role < ROLES) {
		delta += enters(s, p, b, next, now, &woken, &why);
		followed |= look.follow >> b->role & 1;
	}
	// If one thread replaces another and every core is used, the next change charges this time too.
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
