/*
 * fault make FILE: writes the file to map.
 * fault run ROUNDS FILE ANSWER: maps 2048 anonymous pages and the 1024 pages of FILE, privately and without huge pages, writes to
 * each page and reads another word of it, and unmaps both. It repeats this ROUNDS times. A write to an unmapped page is one
 * page fault. (On a first read of a file's page, the kernel would also map surrounding pages.) Each word that it reads, 0 or the file's,
 * goes into x = a*x + c + word (mod 2^64). It writes the last x to ANSWER, and prints the page faults that the
 * kernel counted. Fewer faults than touched pages is a failure, except that 0 means a kernel that counts no faults (gVisor's).
 * fault check ROUNDS ANSWER: checks x without a file.
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
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define ANONYMOUS 2048
#define OF_FILE 1024

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

/* The word that the program reads in a page of the file: the second. */
static uint64_t word(uint64_t page)
{
	return (page + 1) * A;
}

static long faults(void)
{
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used))
		fail("getrusage", strerror(errno));
	return used.ru_minflt + used.ru_majflt;
}

static uint64_t touch(uint64_t x, uint64_t pages, int fd, size_t page)
{
	char *at = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (at == MAP_FAILED)
		fail("mmap", strerror(errno));
	if (madvise(at, pages * page, MADV_NOHUGEPAGE) && errno != EINVAL) /* EINVAL: the kernel has no huge pages */
		fail("madvise", strerror(errno));
	for (uint64_t i = 0; i < pages; i++) {
		volatile uint64_t *words = (void *)(at + i * page);

		words[0] = x;
		x = A * x + C + words[1];
	}
	if (munmap(at, pages * page))
		fail("munmap", strerror(errno));
	return x;
}

static uint64_t run(uint64_t rounds, const char *path)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t x = 42, touched = rounds * (ANONYMOUS + OF_FILE);
	long before = faults(), counted;

	if (fd < 0)
		fail(path, strerror(errno));
	if (lseek(fd, 0, SEEK_END) != (off_t)(OF_FILE * page)) /* made on another host */
		fail(path, "must have 1024 pages");
	while (rounds--) {
		x = touch(x, ANONYMOUS, -1, page);
		x = touch(x, OF_FILE, fd, page);
	}
	counted = faults() - before;
	if (counted && (uint64_t)counted < touched) {
		fprintf(stderr, "page faults: the kernel counted %ld: must be at least %llu\n", counted, (unsigned long long)touched);
		exit(1);
	}
	printf("{\"faults\": %ld}\n", counted);
	return x;
}

static uint64_t replay(uint64_t rounds)
{
	uint64_t x = 42;

	while (rounds--) {
		for (uint64_t i = 0; i < ANONYMOUS; i++)
			x = A * x + C;
		for (uint64_t i = 0; i < OF_FILE; i++)
			x = A * x + C + word(i);
	}
	return x;
}

static void make(const char *path)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint64_t *words = calloc(1, page);
	FILE *out = fopen(path, "w");

	if (!out || !words)
		fail(path, strerror(errno));
	for (uint64_t i = 0; i < OF_FILE; i++) {
		words[1] = word(i);
		fwrite(words, page, 1, out);
	}
	free(words);
	if (ferror(out) || fclose(out))
		fail(path, "cannot be written");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int is_run = argc == 5 && !strcmp(what, "run"), check = argc == 4 && !strcmp(what, "check");
	char *end = "";

	if (argc == 3 && !strcmp(what, "make")) {
		make(argv[2]);
		return 0;
	}
	uint64_t rounds = is_run || check ? strtoull(argv[2], &end, 10) : 0;

	if (!rounds || *end) {
		fprintf(stderr, "usage: fault make FILE | run ROUNDS FILE ANSWER | check ROUNDS ANSWER\n");
		return 2;
	}
	const char *path = argv[argc - 1];
	uint64_t x = is_run ? run(rounds, argv[3]) : replay(rounds);
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
