/* spawn N PROGRAM: creates and reaps PROGRAM N times, and prints the nanoseconds of each on a line. All rulers are compared with it. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

int main(int argc, char **argv)
{
	int n = argc == 3 ? atoi(argv[1]) : 0;
	long long *took = calloc(n > 0 ? n : 1, sizeof *took);
	char *child[] = {argc == 3 ? argv[2] : NULL, NULL};

	if (n <= 0 || !took)
		return 2;
	for (int i = 0; i < n; i++) {
		struct timespec a, b;
		pid_t pid;
		int status;

		clock_gettime(CLOCK_MONOTONIC, &a);
		if (posix_spawn(&pid, child[0], NULL, NULL, child, environ) || waitpid(pid, &status, 0) != pid)
			return 1;
		clock_gettime(CLOCK_MONOTONIC, &b);
		if (status)
			return 1;
		took[i] = (b.tv_sec - a.tv_sec) * 1000000000LL + (b.tv_nsec - a.tv_nsec);
	}
	for (int i = 0; i < n; i++)
		printf("%lld\n", took[i]);
	return 0;
}
