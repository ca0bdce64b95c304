/*
 * served MODE ARGUMENT…: what a service may do all day, for the tests of observing. It goes on until its input ends. For each byte of its
 * input it says in one line what it did by its own clocks, in seconds: "elapsed cpu waited".
 *
 *   burst N MS PERIOD   every PERIOD ms, MS ms of CPU time in N threads at once; waited: from when a request was due until it was done
 *   sleeps              sleeps 10 ms, again and again; waited: asleep
 *   direct FILE         reads FILE past the cache, 64 KiB at a time, again and again; waited: in read(2), less its CPU time there
 *   children MS         one child after another uses MS ms of CPU time in its own code and ends; waited: their CPU time, by the kernel's samples of
 *                       user time
 *   again FILE          reads FILE through the cache, again and again; waited: in read(2), less its CPU time there
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 65536

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double start;

/* How long requests took, since they were last asked for. */
static double *took;
static int requests, room;

static void note(double seconds)
{
	if (requests == room && !(took = realloc(took, (room = 2 * room + 64) * sizeof *took)))
		exit(1);
	took[requests++] = seconds;
}

/* over answers a question, and reports whether the input has ended. */
static int over(double waited)
{
	struct pollfd in = {0, POLLIN, 0};
	char byte;
	if (poll(&in, 1, 0) <= 0)
		return 0;
	if (read(0, &byte, 1) <= 0)
		return 1;
	if (byte == '!') {
		for (int i = 0; i < requests; i++)
			printf("%.6f ", took[i]);
		requests = 0;
		puts("");
	} else
		printf("%.6f %.6f %.6f\n", now(CLOCK_MONOTONIC) - start, now(CLOCK_PROCESS_CPUTIME_ID), waited);
	fflush(stdout);
	return 0;
}

static double each;
static pthread_barrier_t begin, end;

static void *work(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_barrier_wait(&begin);
		double until = now(CLOCK_THREAD_CPUTIME_ID) + each;
		while (now(CLOCK_THREAD_CPUTIME_ID) < until)
			for (volatile int i = 0; i < 2000; i++)
				;
		pthread_barrier_wait(&end);
	}
	return 0;
}

static void burst(int threads, double ms, double period)
{
	double from = now(CLOCK_MONOTONIC), waited = 0;
	pthread_t t;
	each = ms / 1000 / threads;
	pthread_barrier_init(&begin, 0, threads + 1);
	pthread_barrier_init(&end, 0, threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t, 0, work, 0))
			exit(1);
	for (int i = 0; !over(waited); i++) {
		double due = from + i * period / 1000;
		struct timespec at = {(time_t)due, (long)((due - (time_t)due) * 1e9)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
		note(now(CLOCK_MONOTONIC) - due);
		waited += took[requests - 1];
	}
}

static void sleeps(void)
{
	double waited = 0;
	struct timespec ten = {0, 10000000};
	while (!over(waited)) {
		double from = now(CLOCK_MONOTONIC);
		nanosleep(&ten, 0);
		waited += now(CLOCK_MONOTONIC) - from;
	}
}

static void reads(const char *path, int flags)
{
	void *chunk;
	int fd = open(path, O_RDONLY | flags);
	double waited = 0;
	if (fd < 0 || posix_memalign(&chunk, 4096, CHUNK)) {
		perror(path);
		exit(1);
	}
	while (!over(waited)) {
		double from = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
		ssize_t n = read(fd, chunk, CHUNK);
		if (n < 0) {
			perror(path);
			exit(1);
		}
		waited += now(CLOCK_MONOTONIC) - from - (now(CLOCK_THREAD_CPUTIME_ID) - cpu);
		if (n < CHUNK && lseek(fd, 0, SEEK_SET)) {
			perror(path);
			exit(1);
		}
	}
}

static void children(double ms)
{
	struct rusage used = {0};
	struct timespec pause = {0, 5000000};
	while (!over(used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6)) {
		pid_t child = fork();
		if (child < 0)
			exit(1);
		if (!child) {
			while (now(CLOCK_PROCESS_CPUTIME_ID) < ms / 1000)
				for (volatile int i = 0; i < 20000; i++)
					;
			_exit(0);
		}
		if (waitpid(child, 0, 0) != child || getrusage(RUSAGE_CHILDREN, &used))
			exit(1);
		nanosleep(&pause, 0);
	}
}

int main(int argc, char **argv)
{
	start = now(CLOCK_MONOTONIC);
	puts("ready");
	fflush(stdout);
	if (argc == 5 && !strcmp(argv[1], "burst"))
		burst(atoi(argv[2]), atof(argv[3]), atof(argv[4]));
	else if (argc == 2 && !strcmp(argv[1], "sleeps"))
		sleeps();
	else if (argc == 3 && !strcmp(argv[1], "direct"))
		reads(argv[2], O_DIRECT);
	else if (argc == 3 && !strcmp(argv[1], "children"))
		children(atof(argv[2]));
	else if (argc == 3 && !strcmp(argv[1], "again"))
		reads(argv[2], 0);
	else
		return 2;
	return 0;
}
