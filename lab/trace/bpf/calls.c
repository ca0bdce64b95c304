// Counts the system calls of the guest's threads by kind, and the bytes that they moved.
#include "trace.h"

// Kinds of calls, in the order of package trace. READS and WRITES transfer by a descriptor, and count by what it is. CLONES make a process, or a
// thread if both share memory. SPAWNS make one that shares memory.
enum { SIMPLE, DESCRIPTOR, PATH, OPENS, ENTRIES, FILES, PIPES, SOCKETS, CONNECTIONS, MEMORIES, MAPPED_SHARED, FUTEXES, POLLS, SLEEPS, PROCESSES, FORKS, EXECS, SYNCS, SIGNALS, RINGS, CALL_KINDS, SPAWNS = 251, CLONES = 252, READS = 253, WRITES = 254, MAPS = 255 };
#define MAP_SHARED 1
#define CLONE_VM 0x100
#define O_DSYNC 010000 // O_SYNC has it too

u8 kinds_of_calls[SYSCALLS]; // by the number of the call

struct calls { u64 n[CALL_KINDS], bytes[CALL_KINDS]; };
struct spans_of_calls { struct calls span[SPANS]; };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct spans_of_calls);
} calls SEC(".maps");

// shared says whether a call of mmap asks for memory that others can share.
static __always_inline _Bool shared(struct pt_regs *regs)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm *arm = (void *)regs;
	u64 flags = bpf_core_field_exists(x86->orig_ax) ? x86->r10 : arm->regs[3];
	return flags & MAP_SHARED; // MAP_SHARED_VALIDATE too
}

// forks says whether a call of clone makes a process that has its own copy of the memory.
static __always_inline _Bool forks(struct pt_regs *regs)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm *arm = (void *)regs;
	u64 flags = bpf_core_field_exists(x86->orig_ax) ? x86->di : arm->orig_x0;
	return !(flags & CLONE_VM);
}

// flushes says whether each write to a descriptor's file is flushed to the disk.
static __always_inline _Bool flushes(struct task_struct *t, u64 fd)
{
	struct file *file = file_of(t, fd);
	unsigned int flags = 0;
	bpf_probe_read_kernel(&flags, sizeof flags, &file->f_flags);
	return flags & O_DSYNC;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(called, struct pt_regs *regs, long result)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task_btf();
	struct seat *a = seat(t->pid);
	u32 zero = 0;
	if (!a || !look.open || a->role != WORK)
		return 0;
	struct spans_of_calls *s = bpf_map_lookup_elem(&calls, &zero);
	u64 fd = 0, nr = call_of(t, &fd);
	if (!s || nr >= SYSCALLS)
		return 0;
	u32 kind = kinds_of_calls[nr & (SYSCALLS - 1)];
	_Bool makes = kind == CLONES || kind == SPAWNS || kind == FORKS;
	if (kind == MAPS)
		kind = shared(regs) ? MAPPED_SHARED : MEMORIES;
	if (kind == CLONES)
		kind = forks(regs) ? FORKS : PROCESSES;
	if (kind == SPAWNS)
		kind = PROCESSES;
	_Bool flushed = 0;
	if (kind == READS || kind == WRITES) {
		u32 of = reason_by_file(t, fd);
		flushed = kind == WRITES && of == BLOCK && result > 0 && flushes(t, fd);
		kind = of == NETWORK ? SOCKETS : of == BLOCK ? FILES : PIPES;
	}
	if (kind >= CALL_KINDS || (makes && !result)) // in the new process
		return 0;
	struct calls *c = &s->span[(look.spans - 1) % SPANS];
	c->n[kind]++;
	if (flushed)
		c->n[SYNCS]++;
	if (result > 0 && (kind == FILES || kind == PIPES || kind == SOCKETS))
		c->bytes[kind] += result;
	return 0;
}
