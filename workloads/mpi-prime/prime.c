/*
 * prime SWEEPS EACH BYTES ANSWER: counts the primes up to N, for N that grows in small steps to LIMIT. It repeats this SWEEPS times.
 * Rank 0 writes "LIMIT COUNT", with the count up to LIMIT, to the file ANSWER. Exit status 1 if two sweeps disagree.
 *
 * Communication dominates. In each step rank 0 broadcasts N, each rank tests every np-th of the EACH*np new integers
 * by division, and a Reduce adds the counts. A rank does little between two messages. Each message has BYTES
 * bytes that repeat its number.
 */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 65536

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

/* Returns the number of primes up to LIMIT on rank 0. The other ranks help. */
static uint64_t sweep(int rank, int ranks, uint64_t each, int words, uint64_t *mine, uint64_t *all)
{
	uint64_t total = 0, before = 0;

	while (before < LIMIT) {
		uint64_t n = before + each * ranks < LIMIT ? before + each * ranks : LIMIT, count = 0;

		for (int i = 0; i < words; i++)
			mine[i] = rank ? 0 : n;
		MPI_Bcast(mine, words, MPI_UINT64_T, 0, MPI_COMM_WORLD);
		n = mine[words - 1];
		for (uint64_t i = before + 1 + rank; i <= n; i += ranks)
			count += prime(i);
		for (int i = 0; i < words; i++)
			mine[i] = count;
		MPI_Reduce(mine, all, words, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
		if (!rank)
			total += all[words - 1];
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

	long sweeps = argc == 5 ? strtol(argv[1], &end, 10) : 0;
	uint64_t each = argc == 5 ? strtoull(argv[2], NULL, 10) : 0;
	int words = argc == 5 ? atoi(argv[3]) / 8 : 0;
	uint64_t *mine = calloc(words > 0 ? words : 1, 8), *all = calloc(words > 0 ? words : 1, 8);

	if (sweeps < 1 || *end || !each || words < 1 || !mine || !all) {
		if (!rank) {
			fprintf(stderr, "usage: prime SWEEPS EACH BYTES ANSWER, with 8 BYTES or more\n");
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has printed it */
	}
	uint64_t count = sweep(rank, ranks, each, words, mine, all);

	for (long i = 1; i < sweeps; i++) {
		uint64_t again = sweep(rank, ranks, each, words, mine, all);

		if (again != count) {
			fprintf(stderr, "sweep %ld counted %llu primes, the first %llu\n", i + 1, (unsigned long long)again, (unsigned long long)count);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	if (!rank) {
		FILE *answer = fopen(argv[4], "w");

		if (!answer || fprintf(answer, "%d %llu\n", LIMIT, (unsigned long long)count) < 0 || fclose(answer)) {
			fprintf(stderr, "%s: cannot be written: %s\n", argv[4], strerror(errno));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Finalize();
	return 0;
}
