// Interrupts of devices and soft interrupts during a trial, and where the guest's threads were when one woke them.
#include "trace.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct irqaction { const char *name; };
struct task_struct___woken { int pid, wake_cpu; };
#pragma clang attribute pop

#define SOFTIRQS 10
enum { NET_TX = 2, NET_RX = 3, SOFT_BLOCK = 4 };

struct interrupt { u64 n; char device[24]; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct interrupt);
} interrupts SEC(".maps"); // by number

// What happens on one CPU.
struct serving {
	u32 hard, soft; // whether it serves the interrupt of a device, and a soft interrupt of devices
	u64 softirqs[SOFTIRQS];
	u64 wakeups, remote, far; // of the guest's threads: in all, of threads whose CPU was another one, and of those one with another cache
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct serving);
} serving SEC(".maps");

extern u8 cache_of[MAX_CPUS];

static __always_inline struct serving *here(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&serving, &zero);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_entry, int irq, struct irqaction *action)
{
	struct serving *h = here();
	if (!h)
		return 0;
	h->hard = 1;
	if (!look.open)
		return 0;
	u32 number = irq;
	struct interrupt *i = bpf_map_lookup_elem(&interrupts, &number);
	if (!i) {
		struct interrupt new = {};
		bpf_probe_read_kernel_str(new.device, sizeof(new.device), action->name);
		bpf_map_update_elem(&interrupts, &number, &new, BPF_NOEXIST);
		i = bpf_map_lookup_elem(&interrupts, &number);
		if (!i) {
			struct sums *s = mine();
			if (s)
				s->lost++;
			return 0;
		}
	}
	__sync_fetch_and_add(&i->n, 1);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_exit)
{
	struct serving *h = here();
	if (h)
		h->hard = 0;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(soft_entry, unsigned vec)
{
	struct serving *h = here();
	if (!h)
		return 0;
	h->soft = vec == NET_RX || vec == NET_TX || vec == SOFT_BLOCK;
	if (look.open && vec < SOFTIRQS)
		h->softirqs[vec]++;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(soft_exit)
{
	struct serving *h = here();
	if (h)
		h->soft = 0;
	return 0;
}

// A thread that a device's interrupt wakes: the CPU that serves the interrupt is this one, the thread's is where it last ran.
SEC("tp_btf/sched_waking")
int BPF_PROG(io_waking, struct task_struct___woken *t)
{
	struct serving *h = here();
	if (!h || !look.open || !(h->hard || h->soft))
		return 0;
	struct seat *a = seat(t->pid);
	if (!a || a->role >= ROLES)
		return 0;
	u32 now = bpf_get_smp_processor_id(), was = t->wake_cpu;
	h->wakeups++;
	if (now == was)
		return 0;
	h->remote++;
	MASK(now, 1023);
	MASK(was, 1023);
	if (cache_of[now] != cache_of[was])
		h->far++;
	return 0;
}
