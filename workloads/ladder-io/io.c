/*
 * io run BATCHES FILE ANSWER: BATCHES times, writes 8 blocks of 4 KiB, scattered over the 4 MiB of FILE, sees them on the disk
 * (fdatasync), and reads them back. No block is written with the same bytes twice, and all that is read is folded into
 * x = a*x + c + the block's sum (mod 2^64); the last x goes to ANSWER. Reads and writes go past the page cache (O_DIRECT) where
 * the file system can do that; elsewhere the kernel is asked to forget what has been written before it is read. Which of
 * the two it was is printed.
 * io check BATCHES ANSWER: the same x without a file.
 *
 * Exit status 0, 1 for a failure or a wrong answer, 2 for wrong arguments; one line says what.
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
#define BLOCKS 1024 /* of FILE */
#define BATCH 8
#define WORDS (BLOCK / sizeof(uint64_t))

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

/* Word w of the n-th block that is written, and where it is written: every block of the file in turn, neighbours far apart. */
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
		x += block[w] ^ w; /* not the same for the same words in another order */
	return x;
}

static uint64_t run(uint64_t batches, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT, 0600), direct = fd >= 0;
	uint64_t x = 42, *block;

	if (!direct && errno == EINVAL) { /* some make the file before they refuse */
		unlink(path);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		fail(path, strerror(errno));
	if (posix_memalign((void **)&block, BLOCK, BLOCK))
		fail("memory", "there is none");
	for (uint64_t b = 0; b < batches; b++) {
		for (uint64_t n = b * BATCH; n < (b + 1) * BATCH; n++) {
			fill(block, n);
			ssize_t wrote = pwrite(fd, block, BLOCK, place(n));

			if (wrote < 0 && errno == EINVAL && direct) { /* open took the flag, and the disk's blocks are larger */
				if (fcntl(fd, F_SETFL, 0))
					fail(path, strerror(errno));
				direct = 0;
				wrote = pwrite(fd, block, BLOCK, place(n));
			}
			if (wrote != BLOCK)
				fail(path, wrote < 0 ? strerror(errno) : "a block could not be written as a whole");
		}
		if (fdatasync(fd))
			fail(path, strerror(errno));
		for (uint64_t n = b * BATCH; n < (b + 1) * BATCH; n++) {
			int no = direct ? 0 : posix_fadvise(fd, place(n), BLOCK, POSIX_FADV_DONTNEED);
			ssize_t got = pread(fd, block, BLOCK, place(n));

			if (no)
				fail(path, strerror(no));
			if (got != BLOCK)
				fail(path, got < 0 ? strerror(errno) : "a whole block was expected");
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
		fprintf(stderr, "wrong answer: %llu was expected\n", (unsigned long long)x);
		return 1;
	}
	return 0;
}
