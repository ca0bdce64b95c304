/*
 * busy CORES: CORES processes increment an integer forever. Each ends when the previous one ends. Exit status 2 for a wrong argument.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char *end = "";
	double cores = argc == 2 ? strtod(argv[1], &end) : 0;
	volatile uint64_t n = 0;

	if (!(cores > 0 && cores <= 4096) || *end) {
		fprintf(stderr, "usage: busy CORES\n");
		return 2;
	}
	for (; cores > 1; cores--) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("busy: fork");
			return 1;
		}
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			break;
		}
	}
	for (;;)
		n++;
}
