/*
 * hashing make MEGABYTES FILE: writes MEGABYTES MiB of keys, 32 bytes each, 128 to a page of 4096 bytes.
 * hashing run FORM ROUNDS FILE ANSWER: maps FILE, read-only and shared, and computes the index of each key: its sdbm hash (h = c + 65599*h,
 * mod 2^32) modulo the number of keys in the file. FORM dense uses every key, sparse the keys in the first 20 % of each page, 25 of
 * 128. It stores the indices in its own memory, 4 bytes each. It repeats this ROUNDS times over one mapping. The indices of the last round
 * go into x = a*x + c + index (mod 2^64). It writes x to ANSWER.
 * hashing check FORM MEGABYTES ANSWER: checks x without the file, with each hash as a sum of powers.
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
#include <unistd.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define PAGE 4096
#define KEY 32
#define KEYS (PAGE / KEY)	/* in a page */
#define SPARSE (PAGE / 5 / KEY) /* keys in the first 20 % of a page */

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void key(uint64_t n, unsigned char *to)
{
	for (uint64_t i = 0, x = n; i < KEY; i += sizeof x) {
		x = A * x + C;
		memcpy(to + i, &x, sizeof x);
	}
}

static uint32_t sdbm(const unsigned char *key)
{
	uint32_t h = 0;

	for (int i = 0; i < KEY; i++)
		h = key[i] + (h << 6) + (h << 16) - h;
	return h;
}

static void make(uint64_t pages, const char *path)
{
	unsigned char page[PAGE];
	FILE *out = fopen(path, "w");

	if (!out)
		fail(path, strerror(errno));
	for (uint64_t p = 0; p < pages; p++) {
		for (uint64_t k = 0; k < KEYS; k++)
			key(p * KEYS + k, page + k * KEY);
		if (fwrite(page, sizeof page, 1, out) != 1)
			fail(path, strerror(errno));
	}
	if (fclose(out))
		fail(path, strerror(errno));
}

static uint64_t run(uint64_t taken, uint64_t rounds, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	uint64_t pages = size / PAGE, count = 0, x = 42;

	if (size < 0)
		fail(path, strerror(errno));
	if (!size || size % PAGE)
		fail(path, "must have pages of 4096 bytes");
	const unsigned char *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	uint32_t *indices = malloc(pages * taken * sizeof *indices);

	if (data == MAP_FAILED || !indices)
		fail("memory", strerror(errno));
	while (rounds--) {
		count = 0;
		for (uint64_t p = 0; p < pages; p++)
			for (uint64_t k = 0; k < taken; k++)
				indices[count++] = sdbm(data + p * PAGE + k * KEY) % (uint32_t)(pages * KEYS);
	}
	for (uint64_t i = 0; i < count; i++)
		x = A * x + C + indices[i];
	return x;
}

static uint64_t replay(uint64_t taken, uint64_t pages)
{
	unsigned char bytes[KEY];
	uint64_t x = 42;

	for (uint64_t p = 0; p < pages; p++)
		for (uint64_t k = 0; k < taken; k++) {
			uint32_t sum = 0, power = 1;

			key(p * KEYS + k, bytes);
			for (int i = KEY; i-- > 0; power *= 65599)
				sum += bytes[i] * power;
			x = A * x + C + sum % (uint32_t)(pages * KEYS);
		}
	return x;
}

static uint64_t number(const char *s)
{
	char *end;
	uint64_t n = strtoull(s, &end, 10);

	if (!n || *end) {
		fprintf(stderr, "%s: must be a number\n", s);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *form = argc > 2 ? argv[2] : "";
	int is_run = argc == 6 && !strcmp(what, "run"), check = argc == 5 && !strcmp(what, "check"), sparse = !strcmp(form, "sparse");
	unsigned long long got;

	if (argc == 4 && !strcmp(what, "make")) {
		make(number(argv[2]) * ((1 << 20) / PAGE), argv[3]);
		return 0;
	}
	if ((!is_run && !check) || (!sparse && strcmp(form, "dense"))) {
		fprintf(stderr, "usage: hashing make MEGABYTES FILE | run dense|sparse ROUNDS FILE ANSWER | check dense|sparse MEGABYTES ANSWER\n");
		return 2;
	}
	uint64_t taken = sparse ? SPARSE : KEYS, n = number(argv[3]);
	uint64_t x = is_run ? run(taken, n, argv[4]) : replay(taken, n * ((1 << 20) / PAGE));
	const char *path = argv[argc - 1];
	FILE *file = fopen(path, is_run ? "w" : "r");

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
