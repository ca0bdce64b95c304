/*
 * syscall run ROUNDS FILE ANSWER: makes ROUNDS rounds of eight cheap system calls, without the C library's caches and the
 * vDSO: getppid, clock_gettime, uname, fstat and lseek of FILE, stat of FILE by its path, one byte read from /dev/zero
 * and one written to /dev/null. Each result goes into x = a*x + c + result (mod 2^64). It writes the last x to ANSWER.
 * It first makes FILE 1000 bytes long.
 * syscall check ROUNDS ANSWER: checks x by repeated squaring, without these system calls.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define SIZE 1000 /* bytes of FILE */
#define AT 300	  /* where lseek goes */
#define CALLS 8

/* The results of a round's calls in their order, if none fails. */
static const uint64_t right[CALLS] = {0, 0, 0, SIZE, AT, SIZE, 1, 1};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static int opened(const char *path, int how)
{
	int fd = open(path, how | O_CLOEXEC, 0600);

	if (fd < 0)
		fail(path, strerror(errno));
	return fd;
}

static uint64_t run(uint64_t rounds, const char *path)
{
	int file = opened(path, O_RDWR | O_CREAT | O_TRUNC), zero = opened("/dev/zero", O_RDONLY), null = opened("/dev/null", O_WRONLY);
	long parent = syscall(SYS_getppid);
	uint64_t x = 42;

	if (ftruncate(file, SIZE))
		fail(path, strerror(errno));
	while (rounds--) {
		struct stat open = {0}, named = {0};
		struct utsname name;
		struct timespec now;
		char byte = 1;
		uint64_t got[CALLS] = {
		    syscall(SYS_getppid) - parent,
		    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now),
		    uname(&name),
		    fstat(file, &open) ? (uint64_t)-1 : (uint64_t)open.st_size,
		    lseek(file, AT, SEEK_SET),
		    stat(path, &named) ? (uint64_t)-1 : (uint64_t)named.st_size,
		    read(zero, &byte, 1) + byte,
		    write(null, &byte, 1),
		};
		for (int i = 0; i < CALLS; i++)
			x = A * x + C + got[i];
	}
	return x;
}

static uint64_t jump(uint64_t rounds)
{
	uint64_t a = 1, c = 0, x = 42;

	for (int i = 0; i < CALLS; i++) { /* the map of one round */
		a *= A;
		c = A * c + C + right[i];
	}
	for (; rounds; rounds >>= 1) {
		if (rounds & 1)
			x = a * x + c;
		c = (a + 1) * c;
		a *= a;
	}
	return x;
}

int main(int argc, char **argv)
{
	int is_run = argc == 5 && !strcmp(argv[1], "run"), check = argc == 4 && !strcmp(argv[1], "check");
	char *end = "";
	uint64_t rounds = is_run || check ? strtoull(argv[2], &end, 10) : 0;

	if (!rounds || *end) {
		fprintf(stderr, "usage: syscall run ROUNDS FILE ANSWER | check ROUNDS ANSWER\n");
		return 2;
	}
	const char *path = argv[argc - 1];
	uint64_t x = is_run ? run(rounds, argv[3]) : jump(rounds);
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
