/*
 * busy FILE: writes blocks of 64 KiB to a file of 8 MiB again and again, and flushes each (fdatasync) before the next. Exit status 1 if that
 * fails, 2 for a wrong argument.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define BLOCK (64 << 10)
#define BLOCKS 128

static uint64_t block[BLOCK / sizeof(uint64_t)];

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: busy FILE\n");
		return 2;
	}
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0) {
		perror(argv[1]);
		return 1;
	}
	for (uint64_t n = 0;; n++) {
		for (unsigned i = 0; i < sizeof block / sizeof *block; i += 512) /* change every page */
			block[i] = n * 0x9e3779b97f4a7c15ULL + i;
		if (pwrite(fd, block, sizeof block, n % BLOCKS * BLOCK) != sizeof block || fdatasync(fd)) {
			perror(argv[1]);
			return 1;
		}
	}
}
