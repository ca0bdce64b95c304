// Follows the guest's threads from their creation to their end, which all other programs need, and reads what the kernel counts for each.
#include "trace.h"

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
			return 0; // the load is not part of the service
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

// based records a thread's counters at the beginning, in fields that are otherwise used only if switches are traced.
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

// owned adds what the counters have counted since.
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

// A thread that executes a program takes the id of its process, if it was not the first thread of it.
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
		b->reason = a->reason;
		if (look.each)
			*each(b) = *each(a);
	}
	a->id = 0;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct *t)
{
	// The first thread of a process may end long before the last, or give its id to a thread that executes another program.
	_Bool last = look.open && t->tgid == look.main && !t->signal->live.counter;
	if (last) {
		look.died = bpf_ktime_get_ns();
		look.dying = 1;
	}
	struct seat *a = seat(t->pid);
	struct sums *s = mine();
	if (look.events) {
		// The ruler may end the span before the thread leaves its core, so its time on the core is counted now. The rest is added if the span is still open.
		if (a && s && a->state == RUNS) {
			u64 now = bpf_ktime_get_ns();
			spent(span(s), a, ON, passed(a->since, now));
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

// seed gives seats to the threads that exist already.
SEC("iter/task")
int seed(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	if (!t)
		return 0;
	u32 pid = t->pid, *role = bpf_map_lookup_elem(&seeds, &pid);
	if (!role || seat(pid))
		return 0;
	struct seat *a = new_seat(pid, *role);
	if (!a) {
		struct sums *s = mine();
		if (s)
			s->lost++;
		return 0;
	}
	if (look.events) {
		a->delayed = t->sched_info.run_delay;
		if (look.each)
			each(a)->base = t->se.sum_exec_runtime;
	} else
		based(a, t);
	look.queues = !throttles_threads();
	look.seeded++;
	return 0;
}

// gather resets the counters of the existing threads (look.gather is 0), or adds what they have counted.
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
