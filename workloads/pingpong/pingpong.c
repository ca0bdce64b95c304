/*
 * pingpong run TRIPS one|two|free ANSWER: two processes pass a number back and forth through two pipes, in TRIPS round trips. Each
 * replaces it by x = a*x + c (mod 2^64). With `one`, both are bound to the first CPU that they may use, so each
 * way is a context switch between them. With `two`, the second is bound to the next CPU, so each way wakes another
 * CPU. With `free`, the scheduler chooses. It writes the last x to ANSWER, and prints the number of CPUs that they may use.
 * pingpong check TRIPS ANSWER: checks x by repeated squaring, without a second process.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define MOST 8192 /* CPUs that a kernel can have */

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

/* Returns the number of CPUs that this process may use; SET says which. */
static int cpus(size_t size, cpu_set_t *set)
{
	if (sched_getaffinity(0, size, set))
		fail("sched_getaffinity", strerror(errno));
	return CPU_COUNT_S(size, set);
}

/* Reduces SET to its Nth CPU, counted from 0, and binds this process to it. */
static void bind_to(int n, size_t size, cpu_set_t *set)
{
	int cpu = 0;

	while (!CPU_ISSET_S(cpu, size, set) || n--)
		cpu++;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	if (sched_setaffinity(0, size, set))
		fail("sched_setaffinity", strerror(errno));
}

static void put(int fd, uint64_t x)
{
	if (write(fd, &x, sizeof x) != sizeof x) /* a pipe writes eight bytes at once */
		fail("write to a pipe", strerror(errno));
}

/* 0 if the other end has been closed. */
static int get(int fd, uint64_t *x)
{
	ssize_t n = read(fd, x, sizeof *x);

	if (n && n != sizeof *x)
		fail("read from a pipe", n < 0 ? strerror(errno) : "the pipe ended within a number");
	return n > 0;
}

/* BOUND is the number of CPUs to which the two are bound; 0: none. */
static uint64_t run(uint64_t trips, int bound)
{
	size_t size = CPU_ALLOC_SIZE(MOST);
	cpu_set_t *set = CPU_ALLOC(MOST);
	int there[2], back[2], status, may;
	uint64_t x = 42;

	if (!set)
		fail("CPU_ALLOC", strerror(errno));
	may = cpus(size, set);
	if (may < bound)
		fail("two", "this process may use only one CPU");
	if (pipe(there) || pipe(back))
		fail("pipe", strerror(errno));
	pid_t pid = fork();

	if (pid < 0)
		fail("fork", strerror(errno));
	if (bound) {
		bind_to(pid ? 0 : bound - 1, size, set);
		may = bound * cpus(size, set); /* a kernel may accept a binding and ignore it */
	}
	if (!pid) {
		close(there[1]);
		close(back[0]);
		while (get(there[0], &x))
			put(back[1], A * x + C);
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	while (trips--) {
		put(there[1], A * x + C);
		if (!get(back[0], &x))
			exit(1); /* the other process has printed why it ended, or was killed */
	}
	close(there[1]);
	if (waitpid(pid, &status, 0) < 0 || status)
		fail("the other process", "it failed");
	printf("{\"cpus\": %d}\n", may);
	return x;
}

static uint64_t jump(uint64_t x, uint64_t n)
{
	uint64_t a = A, c = C;

	for (; n; n >>= 1) {
		if (n & 1)
			x = a * x + c;
		c = (a + 1) * c;
		a *= a;
	}
	return x;
}

int main(int argc, char **argv)
{
	int is_run = argc == 5 && !strcmp(argv[1], "run"), check = argc == 4 && !strcmp(argv[1], "check");
	int one = is_run && !strcmp(argv[3], "one"), two = is_run && !strcmp(argv[3], "two");
	char *end = "";
	uint64_t trips = is_run || check ? strtoull(argv[2], &end, 10) : 0;

	if (!trips || *end || (is_run && !one && !two && strcmp(argv[3], "free"))) {
		fprintf(stderr, "usage: pingpong run TRIPS one|two|free ANSWER | check TRIPS ANSWER\n");
		return 2;
	}
	const char *path = argv[argc - 1];
	uint64_t x = is_run ? run(trips, one ? 1 : two ? 2 : 0) : jump(42, 2 * trips);
	FILE *file = fopen(path, is_run ? "w" : "r");
	unsigned long long got;

	if (!file)
		fail(path, strerror(errno));
	if (is_run) {
		fprintf(file, "%llu\n", (unsigned long long)x);
		if (ferror(file) || fclose(file))
			fail(path, "cannot be written");
	} else if (fscanf(file, "%llu", &got) != 1 || got != x) {
		fprintf(stderr, "wrong answer: must be %llu\n", (unsigned long long)x);
		return 1;
	}
	return 0;
}
