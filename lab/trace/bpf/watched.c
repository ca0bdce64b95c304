// What each thread of something that runs anyway did, and behind whom it waited for a core. Only where look.each says so.
#include "trace.h"

// Who ran on this CPU last, newest first: a process, its cgroup, and since when. Idle is process 0.
#define STINTS 64
struct stint { u64 since, group; u32 process, _; };
struct stints { u64 since; u32 next, _; struct stint of[STINTS]; };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stints);
} stints SEC(".maps");

// Behind whom the guest's threads waited for a core: the time in which they could have run and that one did. Beyond the map's room it
// counts for UNKNOWN_ONE, which has a place from the beginning.
#define UNKNOWN_ONE ((u32)-1)
#define ITSELF ((u32)-2) // a thread of the guest
struct someone { u64 group; u32 process, _; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct someone);
	__type(value, struct waited);
} ahead SEC(".maps");

// left_core records that a thread leaves this CPU.
static __always_inline void left_core(struct stints *all, struct task_struct *t, u64 now)
{
	struct stint *s = &all->of[all->next++ & (STINTS - 1)];
	struct seat *a = seat(t->pid);
	s->since = all->since;
	all->since = now;
	s->process = ITSELF;
	s->group = 0;
	if (a && a->role < ROLES)
		return;
	s->process = t->tgid;
	if (look.open && t->pid && now - s->since >= OTHERS_LEAST)
		note(now + look.offset, now - s->since, t->pid, OTHERS, 0);
	s->group = look.unified ? BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id) : BPF_CORE_READ(t, sched_task_group, css.cgroup, kn, id);
}

// was_ahead adds a time to someone's.
static __always_inline void was_ahead(struct someone *key, u64 ns)
{
	struct waited *w = bpf_map_lookup_elem(&ahead, key);
	if (!w) {
		struct waited none = {};
		bpf_map_update_elem(&ahead, key, &none, BPF_NOEXIST);
		w = bpf_map_lookup_elem(&ahead, key);
	}
	if (!w) {
		struct someone other = {0, UNKNOWN_ONE, 0};
		w = bpf_map_lookup_elem(&ahead, &other);
	}
	if (w) {
		__sync_fetch_and_add(&w->ns, ns);
		__sync_fetch_and_add(&w->count, 1);
	}
}

// was_behind charges a wait for this core to those who ran on it in that time.
static __always_inline void was_behind(struct stints *all, u64 from, u64 now)
{
	u64 until = now;
	for (u32 i = 1; i <= STINTS; i++) {
		struct stint *s = &all->of[(all->next - i) & (STINTS - 1)];
		struct someone key = {};
		u64 since = s->since > from ? s->since : from;
		if (i < STINTS) { // who ran before the oldest is not known
			key.group = s->group;
			key.process = s->process;
		} else {
			key.process = UNKNOWN_ONE;
			since = from;
		}
		if (until > since)
			was_ahead(&key, until - since);
		until = since;
		if (until <= from)
			return;
	}
}

// What threads that have ended did, by the names of their process and of their own.
struct names { char process[16], thread[16]; };
struct past { struct each did; u64 exec, threads; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct names);
	__type(value, struct past);
} ended SEC(".maps");
static const struct past nothing;

// ends keeps what a thread did that ends, and was for the last time on a core for some ns that do not count yet.
static __always_inline void ends(struct sums *s, struct seat *a, struct task_struct *t, u64 last)
{
	struct names key = {};
	struct task_struct *leader = t->group_leader;
	bpf_probe_read_kernel(key.process, sizeof key.process, &leader->comm);
	bpf_probe_read_kernel(key.thread, sizeof key.thread, &t->comm);
	struct past *p = bpf_map_lookup_elem(&ended, &key);
	if (!p) {
		bpf_map_update_elem(&ended, &key, &nothing, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&ended, &key);
	}
	if (!p) {
		s->lost++;
		return;
	}
	struct each *e = each(a);
	for (int i = 0; i < KINDS; i++)
		__sync_fetch_and_add(&p->did.took[i], e->took[i]);
	__sync_fetch_and_add(&p->did.took[ON], last);
	__sync_fetch_and_add(&p->exec, t->se.sum_exec_runtime - e->base);
	__sync_fetch_and_add(&p->threads, 1);
}

// watched runs before the program switched, so that the seats still say what the threads did until now.
SEC("tp_btf/sched_switch")
int BPF_PROG(watched, _Bool preempt, struct task_struct *prev, struct task_struct *next, unsigned prev_state)
{
	u32 zero = 0;
	struct stints *all = bpf_map_lookup_elem(&stints, &zero);
	if (!all)
		return 0;
	u64 now = prev->se.cfs_rq->rq->clock;
	sync(now);
	left_core(all, prev, now);
	if (!look.open)
		return 0;
	struct seat *a = seat(prev->pid);
	if (a && a->role < ROLES)
		note_leaving(prev, now + look.offset, preempt, prev_state);
	a = seat(next->pid);
	_Bool stopped = !throttles_threads() && *(volatile u64 *)&state[0] >> 20 & 1023; // then the whole queue is throttled
	if (a && a->role < ROLES && a->state != THROTTLED && !stopped) {
		u64 queued = next->sched_info.last_queued; // on this core, by its clock
		if (queued && queued < now)
			was_behind(all, queued, now);
	}
	if (a && a->role < ROLES)
		note(now + look.offset, 0, next->pid, ENTERS, a->state << 4 | a->reason);
	if (prev_state & TASK_DEAD) {
		a = seat(prev->pid);
		struct sums *s = mine();
		if (a && s && a->role < ROLES)
			ends(s, a, prev, a->state == RUNS ? passed(a->since, now + look.offset) : 0);
	}
	return 0;
}

// The four bytes of a seat from role to file_reason, which are exchanged together.
union four { u32 all; struct { u8 role, state, reason, file_reason; }; };

// found records the state of the existing threads whose state is not known yet, because they have not been switched. A thread that is switched
// in that moment keeps the state that switched gave it.
SEC("iter/task")
int found(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct sums *s = mine();
	if (!t || !s)
		return 0;
	struct seat *a = seat(t->pid);
	if (!a || a->role >= ROLES)
		return 0;
	u64 delta = 0, now = bpf_ktime_get_ns();
	union four old = {.all = *(volatile u32 *)&a->role}, new = old;
	if (old.state != UNKNOWN)
		return 0;
	a->since = now;
	a->ran = t->se.sum_exec_runtime;
	a->delayed = t->sched_info.run_delay;
	if (t->on_cpu) {
		new.state = RUNS;
		delta = ONE_RUNS;
	} else if (t->__state) {
		new.reason = reason(t, a, 0);
		new.file_reason = a->file_reason;
		old.file_reason = a->file_reason;
		new.state = WAITS;
	} else if (is_throttled(t)) {
		new.state = THROTTLED;
		delta = ONE_THROTTLED;
	} else {
		new.state = READY;
		delta = ONE_READY;
	}
	if (__sync_val_compare_and_swap((u32 *)&a->role, old.all, new.all) == old.all && delta && look.follow >> old.role & 1)
		account(s, span(s), now, delta, OTHER, 0);
	return 0;
}

// The places in files whose pages a thread of the guest itself had to take from the cache, because its memory limit was reached: the file, and
// the page's number in units of NEAR pages, because pages are read in groups of different sizes.
#define NEAR 16
struct place_in { u64 file, at; u32 device, _; };
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct place_in);
	__type(value, u8);
} taken SEC(".maps");

// place_of says where a page of the cache lies.
static __always_inline struct place_in place_of(struct folio *folio)
{
	struct inode *file = folio->mapping->host;
	return (struct place_in){file->i_ino, folio->index / NEAR, file->i_sb->s_dev, 0};
}

#define RECLAIMS 0x800 // PF_MEMALLOC: the thread makes pages free

// uncached notes a page that a thread of the guest takes from the cache because it needs room, not one of a file that it removes.
SEC("tp_btf/mm_filemap_delete_from_page_cache")
int BPF_PROG(uncached, struct folio *folio)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task_btf();
	if (!look.open || !(t->flags & RECLAIMS) || !seat(t->pid))
		return 0;
	struct place_in key = place_of(folio);
	u8 one = 1;
	bpf_map_update_elem(&taken, &key, &one, BPF_ANY);
	return 0;
}

// cached notes of the thread that adds a page to the cache whether that page had been taken from it: then it waits for memory next.
SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(cached, struct folio *folio)
{
	struct seat *a = seat((u32)bpf_get_current_pid_tgid());
	if (!a)
		return 0;
	struct place_in key = place_of(folio);
	a->again |= bpf_map_lookup_elem(&taken, &key) != 0; // until it has waited
	a->again_call = call_of((struct task_struct *)bpf_get_current_task_btf(), 0);
	return 0;
}
