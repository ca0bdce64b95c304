/*
 * search MILLIONS EACH BYTES ANSWER: the ranks together look for the integer J of 1 … MILLIONS million with F(J) = C. Rank 0
 * writes "C J" to the file ANSWER. F is one-to-one and C is F of the last integer, so any number of ranks
 * tests all integers.
 *
 * Communication dominates. Each rank tests every np-th integer. After EACH of them, all ranks agree with an
 * Allreduce whether one has found J, so none goes on in vain. Its message has BYTES bytes that repeat the answer.
 *
 * Rank 0 times every SAMPLE-th Allreduce, and prints about how long all of them took. It reads the clock too rarely to add a cost.
 */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define M 2147483647ULL /* a prime */
#define NONE UINT64_MAX
#define SAMPLE 16

/* Five steps of x = 16807*x mod M, which is one-to-one on 1 … M-1. */
static uint64_t F(uint64_t x)
{
	for (int i = 0; i < 5; i++)
		x = 16807 * x % M;
	return x;
}

int main(int argc, char **argv)
{
	int rank, ranks;
	char *end;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);

	uint64_t last = argc == 5 ? strtoull(argv[1], &end, 10) * 1000000 : 0;
	uint64_t each = argc == 5 ? strtoull(argv[2], NULL, 10) : 0;
	int words = argc == 5 ? atoi(argv[3]) / 8 : 0;
	uint64_t *mine = calloc(words > 0 ? words : 1, 8), *found = calloc(words > 0 ? words : 1, 8);

	if (!last || *end || last >= M || !each || words < 1 || !mine || !found) {
		if (!rank) {
			fprintf(stderr, "usage: search MILLIONS EACH BYTES ANSWER, with MILLIONS from 1 to 2147 and 8 BYTES or more\n");
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has printed it */
	}
	uint64_t c = F(last);

	double communication = 0;
	uint64_t agreements = 0, sampled = 0;

	found[0] = NONE;
	for (uint64_t first = 1; found[0] == NONE && first <= last; first += each * ranks) {
		uint64_t its = NONE;

		for (uint64_t i = 0; i < each; i++) {
			uint64_t j = first + rank + i * ranks;

			if (j <= last && F(j) == c)
				its = j;
		}
		for (int i = 0; i < words; i++)
			mine[i] = its;
		int timed = !rank && agreements++ % SAMPLE == 0;
		double began = timed ? MPI_Wtime() : 0;

		MPI_Allreduce(mine, found, words, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
		if (timed) {
			communication += MPI_Wtime() - began;
			sampled++;
		}
	}
	for (int i = 1; i < words; i++)
		if (found[i] != found[0]) {
			fprintf(stderr, "word %d of the last message differs from the first\n", i + 1);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	if (!rank) {
		FILE *answer = fopen(argv[4], "w");

		if (!answer || fprintf(answer, "%llu %llu\n", (unsigned long long)c, (unsigned long long)found[0]) < 0 || fclose(answer)) {
			fprintf(stderr, "%s: cannot be written: %s\n", argv[4], strerror(errno));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		printf("{\"communication\": %.9g}\n", communication / sampled * agreements);
	}
	MPI_Finalize();
	return 0;
}
