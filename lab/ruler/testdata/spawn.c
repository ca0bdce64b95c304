/* The measure that the ruler is held against: posix_spawn + waitpid of a program, argv[1] times, with a
 * pause of argv[2] microseconds before each. Prints the median in nanoseconds.
 *     cc -O2 -o spawn spawn.c && ./spawn 1000 0 /path/to/true */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int n = argc > 3 ? atoi(argv[1]) : 0;
	long *d = n > 0 ? malloc(n * sizeof *d) : NULL;
	if (!d) {
		fprintf(stderr, "usage: spawn N PAUSE PROGRAM [ARG...]\n");
		return 2;
	}
	for (int i = 0; i < n; i++) {
		struct timespec a, b;
		pid_t pid;
		int status;
		if (atoi(argv[2]) > 0)
			usleep(atoi(argv[2]));
		clock_gettime(CLOCK_MONOTONIC, &a);
		if (posix_spawn(&pid, argv[3], NULL, NULL, argv + 3, environ) != 0 ||
		    waitpid(pid, &status, 0) != pid || status != 0) {
			fprintf(stderr, "spawn: %s did not run and succeed\n", argv[3]);
			return 1;
		}
		clock_gettime(CLOCK_MONOTONIC, &b);
		d[i] = (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec;
	}
	qsort(d, n, sizeof *d, compare);
	printf("%ld\n", d[n / 2]);
	return 0;
}
