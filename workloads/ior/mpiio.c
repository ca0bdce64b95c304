// mpiio OPERATION ACCESS FILE MEBIBYTES KIBIBYTES SECONDS: the ranks of a parallel program read or write one file through MPI-IO, as IOR does. Each has a
// segment of MEBIBYTES, and transfers it once, in pieces of KIBIBYTES, in sequential or random order. After SECONDS each rank ends before its next
// piece; 0 transfers the whole segment. A write ends when MPI_File_sync ends. Before a
// read, the file is written, flushed, and dropped from the page cache. The program checks what it reads. Rank 0 prints one JSON line. Times are those
// of the slowest rank, and latencies those of all ranks.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "mpiio: %s: %s\n", what, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void ok(int status, const char *what)
{
	int said = errno; // for a full disk, Open MPI's own text is "known error not in list"
	char text[MPI_MAX_ERROR_STRING];
	int length;
	if (status == MPI_SUCCESS) {
		errno = 0;
		return;
	}
	MPI_Error_string(status, text, &length);
	fail(what, said ? strerror(said) : text);
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// transfers reads or writes pieces of this rank's segment in an order, and stores the time of each, in seconds. It ends early when MPI_Wtime reaches
// until, unless until is 0. It returns the number of pieces.
static long transfers(MPI_File file, int writes, char *buffer, size_t size, long n, const long *order, double *took, double until)
{
	for (long i = 0; i < n; i++) {
		if (until > 0 && i > 0 && MPI_Wtime() >= until)
			return i;
		MPI_Offset at = ((MPI_Offset)rank * n + order[i]) * (MPI_Offset)size;
		MPI_Status status;
		int moved;
		uint64_t mark = (uint64_t)at + 1;
		if (writes)
			memcpy(buffer, &mark, sizeof mark);
		double start = MPI_Wtime();
		ok(writes ? MPI_File_write_at(file, at, buffer, (int)size, MPI_BYTE, &status) : MPI_File_read_at(file, at, buffer, (int)size, MPI_BYTE, &status),
		   writes ? "MPI_File_write_at" : "MPI_File_read_at");
		if (took)
			took[i] = MPI_Wtime() - start;
		MPI_Get_count(&status, MPI_BYTE, &moved);
		if (moved != (int)size)
			fail(writes ? "MPI_File_write_at" : "MPI_File_read_at", "transferred too few bytes");
		if (!writes && memcmp(buffer, &mark, sizeof mark))
			fail("MPI_File_read_at", "the file differs from what was written");
	}
	return n;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fprintf(stderr, "usage: mpiio read|write sequential|random FILE MEBIBYTES KIBIBYTES SECONDS\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int writes = !strcmp(argv[1], "write"), random_order = !strcmp(argv[2], "random");
	size_t size = strtoul(argv[5], NULL, 10) << 10;
	long n = (long)((strtoul(argv[4], NULL, 10) << 20) / size);
	char *buffer = malloc(size);
	long *order = malloc(n * sizeof *order), *plain = malloc(n * sizeof *plain);
	double *took = malloc(n * sizeof *took), *all = rank ? NULL : malloc((size_t)n * ranks * sizeof *all);
	if (n < 1 || !buffer || !order || !plain || !took || (!rank && !all))
		fail("memory", "not available");
	memset(buffer, 'x', size);
	uint64_t seed = 88172645463325252u + (uint64_t)rank; // every trial has the same order
	for (long i = 0; i < n; i++)
		order[i] = plain[i] = i;
	for (long i = n - 1; random_order && i > 0; i--) {
		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		long j = (long)(seed % (uint64_t)(i + 1)), t = order[i];
		order[i] = order[j], order[j] = t;
	}
	MPI_File file;
	ok(MPI_File_open(MPI_COMM_WORLD, argv[3], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file), argv[3]);
	if (!writes || random_order) { // writes in random order overwrite existing data
		transfers(file, 1, buffer, size, n, plain, NULL, 0);
		ok(MPI_File_sync(file), "MPI_File_sync");
		MPI_Barrier(MPI_COMM_WORLD);
		int fd = open(argv[3], O_RDONLY);
		if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) || close(fd))
			fail(argv[3], "cannot drop its pages from the page cache");
	}
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime(), seconds = strtod(argv[6], NULL), mine, slowest;
	int made = (int)transfers(file, writes, buffer, size, n, order, took, seconds > 0 ? start + seconds : 0);
	if (writes)
		ok(MPI_File_sync(file), "MPI_File_sync");
	mine = MPI_Wtime() - start;
	ok(MPI_File_close(&file), "MPI_File_close");
	MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	int *counts = malloc(ranks * sizeof *counts), *at = malloc(ranks * sizeof *at);
	if (!counts || !at)
		fail("memory", "not available");
	MPI_Gather(&made, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
	long total = 0;
	for (int i = 0; !rank && i < ranks; total += counts[i++])
		at[i] = (int)total;
	MPI_Gatherv(took, made, MPI_DOUBLE, all, counts, at, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (!rank) {
		qsort(all, total, sizeof *all, by_time);
		printf("{\"operations_per_second\": %.9g, \"bandwidth\": %.9g, \"p50\": %.9g, \"p99\": %.9g}\n", total / slowest, total * (double)size / 1e6 / slowest,
		       all[total / 2], all[(long)(total * 0.99)]);
	}
	MPI_Finalize();
	return 0;
}
