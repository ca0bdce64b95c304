/*
 * prime SWEEPS ANSWER: how many primes there are up to N, for N that grows in small steps to LIMIT, SWEEPS times over;
 * rank 0 writes "LIMIT COUNT", the count up to LIMIT, to the file ANSWER. Exit status 1 if two sweeps disagree.
 *
 * Communication dominates: in each step rank 0 broadcasts N, each rank tries every np-th of the EACH*np integers that
 * are new by dividing, and a Reduce adds up what they counted. A rank does little between two messages.
 */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 65536
#define EACH 8 /* integers that a rank tries in a step */

static int prime(uint32_t n)
{
	if (n < 4)
		return n > 1;
	if (n % 2 == 0)
		return 0;
	for (uint32_t d = 3; d * d <= n; d += 2)
		if (n % d == 0)
			return 0;
	return 1;
}

/* The primes up to LIMIT, on rank 0; the other ranks help. */
static uint64_t sweep(int rank, int ranks)
{
	uint64_t total = 0;
	uint32_t before = 0, n = 0;

	while (before < LIMIT) {
		uint64_t mine = 0, all = 0;

		if (!rank)
			n = before + EACH * (uint32_t)ranks < LIMIT ? before + EACH * (uint32_t)ranks : LIMIT;
		MPI_Bcast(&n, 1, MPI_UINT32_T, 0, MPI_COMM_WORLD);
		for (uint32_t i = before + 1 + rank; i <= n; i += ranks)
			mine += prime(i);
		MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
		total += all;
		before = n;
	}
	return total;
}

int main(int argc, char **argv)
{
	int rank, ranks;
	char *end;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);

	long sweeps = argc == 3 ? strtol(argv[1], &end, 10) : 0;

	if (sweeps < 1 || *end) {
		if (!rank) {
			fprintf(stderr, "usage: prime SWEEPS ANSWER\n");
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has said it */
	}
	uint64_t count = sweep(rank, ranks);

	for (long i = 1; i < sweeps; i++) {
		uint64_t again = sweep(rank, ranks);

		if (again != count) {
			fprintf(stderr, "sweep %ld counted %llu primes, the first %llu\n", i + 1, (unsigned long long)again, (unsigned long long)count);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	if (!rank) {
		FILE *answer = fopen(argv[2], "w");

		if (!answer || fprintf(answer, "%d %llu\n", LIMIT, (unsigned long long)count) < 0 || fclose(answer)) {
			fprintf(stderr, "%s: cannot be written: %s\n", argv[2], strerror(errno));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Finalize();
	return 0;
}
