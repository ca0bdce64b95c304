// Faults in known ways: fault FILE KIND N. FILE has at least N*16 pages, of a file system on a disk, in the page cache. It does what all kinds need
// first, so that with N of 0 it makes all faults but those N.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, AROUND = 16 }; // a read of a file maps so many pages around

static char *map(size_t pages, int flags, int fd, char *at)
{
	char *p = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, flags | (at ? MAP_FIXED : 0), fd, 0);
	if (p == MAP_FAILED)
		_exit(2);
	if (madvise(p, pages * PAGE, MADV_NOHUGEPAGE))
		_exit(3);
	return p;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 1;
	int fd = open(argv[1], O_RDWR), n = atoi(argv[3]), status;
	volatile char sum = 0;
	char *fixed = (char *)0x200000001000; // at which nothing of the file is aligned to 2 MiB, and mapped as such
	if (fd < 0)
		return 4;
	size_t pages = 4096;
	int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	if (!strcmp(argv[2], "anonymous")) {
		char *p = map(pages, anonymous, -1, 0);
		for (int i = 0; i < n; i++)
			p[i * PAGE] = 1;
	} else if (!strcmp(argv[2], "zero")) { // anonymous, and read
		char *p = map(pages, anonymous, -1, 0);
		for (int i = 0; i < n; i++)
			sum += p[i * PAGE];
	} else if (!strcmp(argv[2], "read")) {
		char *p = map(pages, MAP_PRIVATE, fd, fixed);
		for (int i = 0; i < n; i++)
			sum += p[(size_t)i * AROUND * PAGE];
	} else if (!strcmp(argv[2], "copy-on-write")) {
		char *p = map(pages, MAP_PRIVATE, fd, fixed);
		for (int i = 0; i < n; i++)
			p[i * PAGE] = 1;
	} else if (!strcmp(argv[2], "shared")) {
		char *p = map(pages, MAP_SHARED, fd, fixed);
		for (int i = 0; i < n; i++)
			p[i * PAGE] = 1;
	} else if (!strcmp(argv[2], "write-protect")) { // what a child has of its parent's
		char *p = map(256, anonymous | MAP_POPULATE, -1, 0);
		int pid = fork();
		if (pid == 0) {
			for (int i = 0; i < n; i++)
				p[i * PAGE] = 2;
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 5;
	} else if (!strcmp(argv[2], "unknown")) { // shared memory that is dirty already, read
		char *p = map(256, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		int pid;
		memset(p, 1, 256 * PAGE);
		pid = fork();
		if (pid == 0) {
			for (int i = 0; i < n; i++)
				sum += p[i * AROUND * PAGE];
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 5;
	} else {
		return 6;
	}
	return 0;
}
