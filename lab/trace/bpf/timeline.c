// Notes when each thread of an observed target runs, who wakes it, and when it reads requests from sockets and answers them. Only if look.each
// is set.
#include "trace.h"

// What a note says of a thread.
enum {
	ENTERS,  // it enters a core: why is its state and reason until now
	LEAVES,  // it leaves one: value is its CPU time, as the scheduler counts it, why what it does next
	WAKES,   // it is woken: value is the thread of the target that does so; 0: something else
	ARRIVES, // bytes come to a connection, whose number is value; there is no thread
	TAKES,   // it takes bytes from the connection value
	SENDS,   // it gives bytes to the connection value
	OTHERS,  // a thread that is not the target's leaves a core, on which it was for value ns
};
#define OTHERS_LEAST 50000 // ns; shorter ones are not noted
// What a thread that leaves a core does next.
enum { IS_READY, DOES_WAIT, IS_THROTTLED, HAS_ENDED };

struct note { u64 at, value; u32 thread; u8 what, why; u16 cpu; };

// Userspace makes it as large as it wants before the programs are loaded, and reads it now and then; nobody is woken.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} timeline SEC(".maps");

u64 unnoted;    // notes for which there was no room: none is kept after them
u32 unwanted;   // nobody reads notes any more
u8 ports[8192]; // the local ports of the target's services, one bit for each

static __always_inline void note(u64 at, u64 value, u32 thread, u8 what, u8 why)
{
	if (unwanted || unnoted)
		return;
	struct note *n = bpf_ringbuf_reserve(&timeline, sizeof *n, 0);
	if (!n) {
		__sync_fetch_and_add(&unnoted, 1);
		return;
	}
	*n = (struct note){at, value, thread, what, why, bpf_get_smp_processor_id()};
	bpf_ringbuf_submit(n, BPF_RB_NO_WAKEUP);
}

// note_leaving notes that a thread leaves a core.
static __always_inline void note_leaving(struct task_struct *t, u64 now, _Bool preempt, unsigned state)
{
	u8 why = IS_READY;
	if (state & TASK_DEAD)
		why = HAS_ENDED;
	else if (state && !preempt)
		why = DOES_WAIT;
	else if (is_throttled(t))
		why = IS_THROTTLED;
	note(now, t->se.sum_exec_runtime, t->pid, LEAVES, why);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *t)
{
	struct seat *a = seat(t->pid);
	if (!look.open || !a || a->role >= ROLES)
		return 0;
	struct task_struct *by = (struct task_struct *)bpf_get_current_task_btf();
	struct seat *b = seat(by->pid);
	u64 waker = 0;
	// An interrupt can wake a thread while another thread of the target runs. The running thread counts as the waker only in a system call, and
	// only for waits that a thread can end: not for sleeps or waits for disks.
	if (b && b->role < ROLES && a->reason != SLEEP && a->reason != BLOCK && call_of(by, 0) < SYSCALLS)
		waker = by->pid;
	note(bpf_ktime_get_ns(), waker, t->pid, WAKES, 0);
	return 0;
}

// begins notes that a thread of the target has made another one.
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(begins, struct task_struct *t)
{
	struct seat *a = seat(t->pid);
	if (look.open && a && a->role < ROLES)
		note(bpf_ktime_get_ns(), (u32)bpf_get_current_pid_tgid(), t->pid, WAKES, 0);
	return 0;
}

// connection returns the number of a connection to one of the target's services; 0: it is none.
static __always_inline u64 connection(struct sock *sk)
{
	const struct sock_common *c = &sk->__sk_common;
	if (!look.open || !look.net || sk->sk_protocol != 6) // TCP
		return 0;
	u32 port = c->skc_num;
	MASK(port, 65535);
	if (!(ports[port >> 3] >> (port & 7) & 1) || c->skc_state == 10) // the socket that listens
		return 0;
	if (c->skc_net.net->ns.inum != look.net)
		return 0;
	return bpf_get_socket_cookie(sk);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(arrives, struct sock *sk)
{
	u64 of = connection(sk);
	if (of)
		note(bpf_ktime_get_ns(), of, 0, ARRIVES, 0);
	return 0;
}

#define PEEKS 2 // MSG_PEEK

static __always_inline int transfers(struct sock *sk, int bytes, u8 what)
{
	struct seat *a = seat((u32)bpf_get_current_pid_tgid());
	u64 of = a && a->role < ROLES && bytes > 0 ? connection(sk) : 0;
	if (of)
		note(bpf_ktime_get_ns(), of, (u32)bpf_get_current_pid_tgid(), what, 0);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(takes, struct sock *sk, int bytes, int flags) { return flags & PEEKS ? 0 : transfers(sk, bytes, TAKES); }

SEC("tp_btf/sock_send_length")
int BPF_PROG(sends, struct sock *sk, int bytes) { return transfers(sk, bytes, SENDS); }
