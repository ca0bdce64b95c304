/*
 * io run BATCHES FILE ANSWER: writes 8 blocks of 4 KiB, scattered over the 4 MiB of FILE, flushes them to the disk
 * (fdatasync), and reads them back. It repeats this BATCHES times, never writing the same bytes to a block. Each block that it reads goes into
 * x = a*x + c + the block's sum (mod 2^64). It writes the last x to ANSWER. Reads and writes bypass the page cache (O_DIRECT) if
 * the file system supports that. Otherwise it asks the kernel to drop written blocks from the cache before it reads them. It prints
 * which of the two it did.
 * io check BATCHES ANSWER: checks x without a file.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define BLOCK 4096
#define BLOCKS 1024 /* in FILE */
#define BATCH 8
#define WORDS (BLOCK / sizeof(uint64_t))

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

/* Word w of the n-th written block, and the place of that block. Every block of the file has its turn; successive ones are far apart. */
static uint64_t word(uint64_t n, uint64_t w)
{
	return (n * WORDS + w + 1) * A;
}

static off_t place(uint64_t n)
{
	return n * 389 % BLOCKS * BLOCK;
}

static void fill(uint64_t *block, uint64_t n)
{
	for (size_t w = 0; w < WORDS; w++)
		block[w] = word(n, w);
}

static uint64_t fold(uint64_t x, const uint64_t *block)
{
	x = A * x + C;
	for (size_t w = 0; w < WORDS; w++)
		x += block[w] ^ w; /* depends on the order of the words */
	return x;
}

static uint64_t run(uint64_t batches, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT, 0600), direct = fd >= 0;
	uint64_t x = 42, *block;

	if (!direct && errno == EINVAL) { /* some file systems create the file before they refuse */
		unlink(path);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		fail(path, strerror(errno));
	if (posix_memalign((void **)&block, BLOCK, BLOCK))
		fail("memory", "not available");
	for (uint64_t b = 0; b < batches; b++) {
		for (uint64_t n = b * BATCH; n < (b + 1) * BATCH; n++) {
			fill(block, n);
			ssize_t wrote = pwrite(fd, block, BLOCK, place(n));

			if (wrote < 0 && errno == EINVAL && direct) { /* open accepted the flag, but the disk has larger blocks */
				if (fcntl(fd, F_SETFL, 0))
					fail(path, strerror(errno));
				direct = 0;
				wrote = pwrite(fd, block, BLOCK, place(n));
			}
			if (wrote != BLOCK)
				fail(path, wrote < 0 ? strerror(errno) : "only part of a block was written");
		}
		if (fdatasync(fd))
			fail(path, strerror(errno));
		for (uint64_t n = b * BATCH; n < (b + 1) * BATCH; n++) {
			int no = direct ? 0 : posix_fadvise(fd, place(n), BLOCK, POSIX_FADV_DONTNEED);
			ssize_t got = pread(fd, block, BLOCK, place(n));

			if (no)
				fail(path, strerror(no));
			if (got != BLOCK)
				fail(path, got < 0 ? strerror(errno) : "the file ends within a block");
			x = fold(x, block);
		}
	}
	printf("{\"direct\": %d}\n", direct);
	return x;
}

static uint64_t replay(uint64_t batches)
{
	uint64_t x = 42, block[WORDS];

	for (uint64_t n = 0; n < batches * BATCH; n++) {
		fill(block, n);
		x = fold(x, block);
	}
	return x;
}

int main(int argc, char **argv)
{
	int is_run = argc == 5 && !strcmp(argv[1], "run"), check = argc == 4 && !strcmp(argv[1], "check");
	char *end = "";
	uint64_t batches = is_run || check ? strtoull(argv[2], &end, 10) : 0;

	if (!batches || *end) {
		fprintf(stderr, "usage: io run BATCHES FILE ANSWER | check BATCHES ANSWER\n");
		return 2;
	}
	const char *path = argv[argc - 1];
	uint64_t x = is_run ? run(batches, argv[3]) : replay(batches);
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
