/* A process with known pages. It reads commands, a line each, and answers each with a line: the address of what it made, or a pid.
     anon N SEED STEP    N private pages; page i is filled with the number SEED + i*STEP
     shared N SEED STEP  N pages of shared memory
     file PATH N         maps the first N pages of a file and reads them
     copy PATH N         maps them privately and writes what is there already
     zero N              N private pages, read and never written
     huge SEED STEP      512 private pages, as one huge page
     drop ADDRESS N      gives N pages back (MADV_DONTNEED)
     forbid ADDRESS N    lets nobody read N pages (PROT_NONE)
     fork                a child that has the same pages, and waits
     write ADDRESS N SEED STEP
     dirty ADDRESS N     writes ever new numbers into N pages until it is killed */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

static void fill(char *at, long n, uint64_t seed, uint64_t step) {
	for (long i = 0; i < n; i++)
		for (uint64_t *w = (uint64_t *)(at + i * PAGE), *end = w + PAGE / sizeof *w; w < end; w++)
			*w = seed + i * step;
}

static char *map(long n, int flags, int fd) {
	char *at = mmap(0, n * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	if (fd < 0)
		madvise(at, n * PAGE, MADV_NOHUGEPAGE);
	return at;
}

static char *file(const char *path, long n, int flags) {
	int fd = open(path, O_RDWR);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	char *at = map(n, flags, fd);
	close(fd);
	return at;
}

static struct { char *at; long n; } shareds[16]; /* a child has to touch them: fork copies no page tables of shared memory */
static int shared_count;

int main(void) {
	static char line[8192], path[4096];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(stdout, 0, _IOLBF, 1024);
	while (fgets(line, sizeof line, stdin)) {
		long n;
		unsigned long a, seed, step;
		volatile char sum = 0;
		if (sscanf(line, "anon %ld %lu %lu", &n, &seed, &step) == 3) {
			char *at = map(n, MAP_PRIVATE | MAP_ANONYMOUS, -1);
			fill(at, n, seed, step);
			printf("%lu\n", (unsigned long)at);
		} else if (sscanf(line, "shared %ld %lu %lu", &n, &seed, &step) == 3) {
			char *at = map(n, MAP_SHARED | MAP_ANONYMOUS, -1);
			fill(at, n, seed, step);
			if (shared_count == 16)
				return 1;
			shareds[shared_count].at = at;
			shareds[shared_count++].n = n;
			printf("%lu\n", (unsigned long)at);
		} else if (sscanf(line, "file %4095s %ld", path, &n) == 2) {
			char *at = file(path, n, MAP_SHARED);
			for (long i = 0; i < n; i++)
				sum += at[i * PAGE];
			printf("%lu\n", (unsigned long)at);
		} else if (sscanf(line, "copy %4095s %ld", path, &n) == 2) {
			char *at = file(path, n, MAP_PRIVATE);
			for (long i = 0; i < n; i++)
				*(volatile char *)(at + i * PAGE) = at[i * PAGE];
			printf("%lu\n", (unsigned long)at);
		} else if (sscanf(line, "zero %ld", &n) == 1) {
			char *at = map(n, MAP_PRIVATE | MAP_ANONYMOUS, -1);
			for (long i = 0; i < n; i++)
				sum += *(volatile char *)(at + i * PAGE);
			printf("%lu\n", (unsigned long)at);
		} else if (sscanf(line, "huge %lu %lu", &seed, &step) == 2) {
			char *at = mmap(0, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			at += HUGE_PAGE - (uintptr_t)at % HUGE_PAGE;
			madvise(at, HUGE_PAGE, MADV_HUGEPAGE);
			fill(at, HUGE_PAGE / PAGE, seed, step);
			madvise(at, HUGE_PAGE, MADV_NOHUGEPAGE); /* which leaves the page; khugepaged does not mend one that "drop" splits */
			printf("%lu\n", (unsigned long)at);
		} else if (sscanf(line, "drop %lu %ld", &a, &n) == 2) {
			printf("%d\n", madvise((void *)a, n * PAGE, MADV_DONTNEED));
		} else if (sscanf(line, "forbid %lu %ld", &a, &n) == 2) {
			printf("%d\n", mprotect((void *)a, n * PAGE, PROT_NONE));
		} else if (sscanf(line, "write %lu %ld %lu %lu", &a, &n, &seed, &step) == 4) {
			fill((char *)a, n, seed, step);
			printf("0\n");
		} else if (strcmp(line, "fork\n") == 0) {
			int ready[2];
			if (pipe(ready) < 0)
				return 1;
			int pid = fork();
			if (pid == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				for (int s = 0; s < shared_count; s++)
					for (long i = 0; i < shareds[s].n; i++)
						sum += *(volatile char *)(shareds[s].at + i * PAGE);
				close(ready[0]);
				close(ready[1]);
				for (;;)
					pause();
			}
			close(ready[1]);
			if (read(ready[0], line, 1) != 0) /* until the child has closed it */
				return 1;
			close(ready[0]);
			printf("%d\n", pid);
		} else if (sscanf(line, "dirty %lu %ld", &a, &n) == 2) {
			printf("0\n");
			for (uint64_t v = 1;; v++)
				for (long i = 0; i < n; i++)
					*(volatile uint64_t *)(a + i * PAGE) = v * n + i;
		} else {
			fprintf(stderr, "what is %s", line);
			return 1;
		}
	}
	return 0;
}
