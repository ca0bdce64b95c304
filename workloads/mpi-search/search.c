/*
 * search MILLIONS ANSWER: the ranks look together for the integer J of 1 … MILLIONS million with F(J) = C, and rank 0
 * writes "C J" to the file ANSWER. F is one-to-one and C is F of the last integer, so that all are looked at,
 * by however many ranks.
 *
 * Communication dominates: each rank looks at every np-th integer, and after each EACH of them all ranks agree by an
 * Allreduce on whether one has found J, so that none goes on in vain.
 */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define M 2147483647ULL /* a prime */
#define EACH 32         /* integers that a rank looks at between two agreements */
#define NONE UINT64_MAX

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

	uint64_t last = argc == 3 ? strtoull(argv[1], &end, 10) * 1000000 : 0;

	if (!last || *end || last >= M) {
		if (!rank) {
			fprintf(stderr, "usage: search MILLIONS ANSWER, with MILLIONS from 1 to 2147\n");
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has said it */
	}
	uint64_t c = F(last), found = NONE;

	for (uint64_t first = 1; found == NONE && first <= last; first += (uint64_t)EACH * ranks) {
		uint64_t mine = NONE;

		for (int i = 0; i < EACH; i++) {
			uint64_t j = first + rank + (uint64_t)i * ranks;

			if (j <= last && F(j) == c)
				mine = j;
		}
		MPI_Allreduce(&mine, &found, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
	}
	if (!rank) {
		FILE *answer = fopen(argv[2], "w");

		if (!answer || fprintf(answer, "%llu %llu\n", (unsigned long long)c, (unsigned long long)found) < 0 || fclose(answer)) {
			fprintf(stderr, "%s: cannot be written: %s\n", argv[2], strerror(errno));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Finalize();
	return 0;
}
