// Starts a trial's process and times it. It does as little as possible between the two readings of the clock, and uses so little memory
// that none is taken for the work's. (A process's peak includes its creator's memory if the two share it until the process executes its
// program. So the peak of a process that the ruler itself started would be at least the ruler's megabytes.)
//
//	launcher DIR CHANGES UID GID GROUPS N PROGRAM ARGUMENT…
//
// CHANGES is a sum: 1 for running PROGRAM with UID, GID and GROUPS, 2 without address space randomisation, 4 without
// transparent huge pages. GROUPS are the supplementary groups, as numbers with commas between them.
//
// It has the trial's environment and the trial's files 0 to 2, and waits for a byte on file 3. Then it runs the empty program in file 5
// once, to bring the kernel's code for creating and reaping back into the caches after the wait. Then it runs PROGRAM N times, one after
// the other; "" is the empty program, too. It writes its results to file 4: struct report, and the times.
//
// `make generate` compiles it; package ruler puts an ELF header before it. So it consists of code, without constants that need an address.
typedef long i64;
typedef unsigned long u64;

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, EXECVE = 59, EXIT = 231, WAIT4 = 61, FCNTL = 72, CHDIR = 80, SETUID = 105, SETGID = 106, SETSID = 112,
	SETGROUPS = 116, PRCTL = 157, CLOCK_GETTIME = 228, CLONE = 56, EXECVEAT = 322 };
#define CALL(nr, a, b, c, d, e) ({ \
	register i64 r10 asm("r10") = (i64)(d); register i64 r8 asm("r8") = (i64)(e); i64 r; \
	asm volatile("syscall" : "=a"(r) : "a"((i64)(nr)), "D"((i64)(a)), "S"((i64)(b)), "d"((i64)(c)), "r"(r10), "r"(r8) : "rcx", "r11", "memory"); r; })
asm(".text\n.globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call launch\n");
#elif defined(__aarch64__)
enum { READ = 63, WRITE = 64, EXECVE = 221, EXIT = 94, WAIT4 = 260, FCNTL = 25, CHDIR = 49, SETUID = 146, SETGID = 144, SETSID = 157,
	SETGROUPS = 159, PRCTL = 167, CLOCK_GETTIME = 113, CLONE = 220, EXECVEAT = 281 };
#define CALL(nr, a, b, c, d, e) ({ \
	register i64 x8 asm("x8") = (i64)(nr); register i64 x0 asm("x0") = (i64)(a); register i64 x1 asm("x1") = (i64)(b); \
	register i64 x2 asm("x2") = (i64)(c); register i64 x3 asm("x3") = (i64)(d); register i64 x4 asm("x4") = (i64)(e); \
	asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory"); x0; })
asm(".text\n.globl _start\n_start: mov x0, sp\n bl launch\n");
#endif

enum { GO = 3, REPORT = 4, EMPTY = 5 };
enum { CLONE_VM = 0x100, CLONE_VFORK = 0x4000, SIGCHLD = 17, SIGKILL = 9, EINTR = 4, F_SETFD = 2, FD_CLOEXEC = 1,
	AT_EMPTY_PATH = 0x1000, PR_SET_PDEATHSIG = 1, PR_SET_NAME = 15, PR_SET_THP_DISABLE = 41, PR_SET_MEMORY_MERGE = 67, CLOCK_MONOTONIC = 1 };
enum { CREDENTIALS = 1, SMALL = 2, MERGEABLE = 4 };

struct rusage { i64 of[18]; };

// The same as the ruler's type of that name.
struct report {
	i64 began, ended; // of the last process, on the monotonic clock, in ns
	i64 status;       // of the process, from wait4
	i64 error;        // errno of a failure; the other fields are then invalid
	i64 done;         // processes that have ended; as many times in ns follow
	struct rusage usage;
};

struct order {
	char *dir, **argv, **envp;
	char *program;
	i64 changes, uid, gid, count;
	unsigned *groups;
	volatile i64 error; // the new process shares this memory until it executes its program
};

// number parses a number and moves on to what follows it.
static i64 number(const char **s)
{
	i64 n = 0;
	while (**s >= '0' && **s <= '9')
		n = 10 * n + *(*s)++ - '0';
	return n;
}

static i64 only(const char *s) { return number(&s); }

static i64 now(void)
{
	volatile i64 t[2];
	CALL(CLOCK_GETTIME, CLOCK_MONOTONIC, t, 0, 0, 0);
	return t[0] * 1000000000 + t[1];
}

// become runs in the new process.
static __attribute__((noinline, noreturn)) void become(struct order *o)
{
	char end = 0;
	i64 r = CALL(SETSID, 0, 0, 0, 0, 0);
	if (r > 0)
		r = 0;
	if (r == 0 && o->changes & SMALL)
		r = CALL(PRCTL, PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (r == 0 && o->changes & MERGEABLE)
		r = CALL(PRCTL, PR_SET_MEMORY_MERGE, 1, 0, 0, 0); // of the memory that the launcher shares; the program inherits it
	if (o->changes & CREDENTIALS) {
		if (r == 0)
			r = CALL(SETGROUPS, o->count, o->groups, 0, 0, 0);
		if (r == 0)
			r = CALL(SETGID, o->gid, 0, 0, 0, 0);
		if (r == 0)
			r = CALL(SETUID, o->uid, 0, 0, 0, 0);
	}
	if (r == 0)
		r = CALL(CHDIR, o->dir, 0, 0, 0, 0);
	if (r == 0)
		r = CALL(PRCTL, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (r == 0) {
		if (*o->program)
			r = CALL(EXECVE, o->program, o->argv, o->envp, 0, 0);
		else
			r = CALL(EXECVEAT, EMPTY, &end, o->argv, o->envp, AT_EMPTY_PATH);
	}
	o->error = -r;
	for (;;)
		CALL(EXIT, 127, 0, 0, 0, 0);
}

// once runs a process and reaps it.
static void once(struct order *o, struct report *r)
{
	i64 pid, got;
	int status = 0;

	r->began = now();
	pid = CALL(CLONE, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		become(o);
	if (pid < 0) {
		r->error = -pid;
		return;
	}
	do
		got = CALL(WAIT4, pid, &status, 0, &r->usage, 0);
	while (got == -EINTR);
	r->ended = now();
	r->status = status;
	r->error = got < 0 ? -got : o->error;
}

static void say(const void *p, i64 size)
{
	while (size > 0) {
		i64 n = CALL(WRITE, REPORT, p, size, 0, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return; // the ruler is gone
		p = (const char *)p + n;
		size -= n;
	}
}

__attribute__((noreturn, used)) static void launch(char **stack)
{
	char **argv = stack + 1, none = 0, *empty[2];
	const char *list = argv[5];
	struct order o, warm;
	struct report r;
	i64 n, byte;

	o.dir = argv[1];
	o.changes = only(argv[2]);
	o.uid = only(argv[3]);
	o.gid = only(argv[4]);
	n = only(argv[6]);
	o.program = argv[7];
	o.argv = argv + 8;
	o.envp = stack + 1 + *(i64 *)stack + 1;
	o.error = 0;
	empty[0] = argv[0];
	empty[1] = 0;
	warm.dir = o.dir;
	warm.changes = 0;
	warm.error = 0;
	warm.program = &none;
	warm.argv = empty;
	warm.envp = empty + 1;
	CALL(PRCTL, PR_SET_NAME, argv[0], 0, 0, 0);
	for (int fd = GO; fd <= EMPTY; fd++)
		CALL(FCNTL, fd, F_SETFD, FD_CLOEXEC, 0, 0);

	o.count = *list ? 1 : 0;
	for (const char *c = list; *c; c++)
		o.count += *c == ',';
	unsigned groups[o.count + 1]; // C has no empty arrays
	o.groups = groups;
	for (i64 i = 0; i < o.count; i++, list++)
		groups[i] = number(&list);

	i64 took[n];
	if (CALL(READ, GO, &byte, 1, 0, 0) == 1) {
		once(&warm, &r); // its result does not matter
		r.done = 0;
		r.error = 0;
		while (r.done < n) {
			once(&o, &r);
			if (r.error)
				break;
			took[r.done++] = r.ended - r.began;
			if (n > 1 && r.status)
				break;
		}
		say(&r, sizeof r);
		say(took, r.done * sizeof took[0]);
	}
	for (;;)
		CALL(EXIT, 0, 0, 0, 0, 0);
}
