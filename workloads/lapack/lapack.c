// lapack ROUTINE N TIMES: runs a routine of LAPACK on a random matrix of order N, TIMES times, and checks each result. It prints the mean time of
// the routine itself, in seconds, as one JSON line.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void dgetrf_(int *, int *, double *, int *, int *, int *);
void dgetrs_(char *, int *, int *, double *, int *, int *, double *, int *, int *, size_t);
void dgeqrf_(int *, int *, double *, int *, double *, double *, int *, int *);
void dsyev_(char *, char *, int *, double *, int *, double *, double *, int *, int *, size_t, size_t);
void dgesvd_(char *, char *, int *, int *, double *, int *, double *, double *, int *, double *, int *, double *, int *, int *, size_t, size_t);

static int n, info, lwork = -1;
static double *a, *kept, *v, *work;

static void *memory(size_t count, size_t size)
{
	void *p = calloc(count, size);
	if (!p) {
		fprintf(stderr, "lapack: no memory for %zu bytes\n", count * size);
		exit(1);
	}
	return p;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int *pivots;

static void lu(void) { dgetrf_(&n, &n, a, &n, pivots, &info); }
static void qr(void) { dgeqrf_(&n, &n, a, &n, v, work, &lwork, &info); }
static void eigen(void) { dsyev_("V", "U", &n, a, &n, v, work, &lwork, &info, 1, 1); }
static void svd(void)
{
	static double *left, *right;
	if (!left)
		left = memory((size_t)n * n, sizeof *left), right = memory((size_t)n * n, sizeof *right);
	dgesvd_("A", "A", &n, &n, a, &n, v, left, &n, right, &n, work, &lwork, &info, 1, 1);
}

// Each check returns the relative error of a known property of the result.

// The factors must solve A x = b.
static double solves(void)
{
	int one = 1;
	double worst = 0, size = 0;
	double *x = memory(n, sizeof *x);
	for (int i = 0; i < n; i++)
		x[i] = 1;
	dgetrs_("N", &n, &one, a, &n, pivots, x, &n, &info, 1);
	for (int i = 0; i < n; i++) {
		double r = -1, row = 0;
		for (int j = 0; j < n; j++)
			r += kept[i + (size_t)j * n] * x[j], row += fabs(kept[i + (size_t)j * n] * x[j]);
		worst = fmax(worst, fabs(r)), size = fmax(size, row);
	}
	free(x);
	return worst / size;
}

// Q must not change the length of any column.
static double columns(void)
{
	double worst = 0;
	for (int j = 0; j < n; j++) {
		double r = 0, c = 0;
		for (int i = 0; i < n; i++)
			c += kept[i + (size_t)j * n] * kept[i + (size_t)j * n];
		for (int i = 0; i <= j; i++)
			r += a[i + (size_t)j * n] * a[i + (size_t)j * n];
		worst = fmax(worst, fabs(r - c) / c);
	}
	return worst;
}

// The squares of the eigenvalues of a symmetric matrix must sum to the squares of its elements. So must the singular values of any matrix.
static double squares(void)
{
	double all = 0, values = 0;
	for (size_t i = 0; i < (size_t)n * n; i++)
		all += kept[i] * kept[i];
	for (int i = 0; i < n; i++)
		values += v[i] * v[i];
	return fabs(values - all) / all;
}

static const struct {
	const char *name;
	void (*run)(void);
	double (*error)(void);
} routines[] = {{"lu", lu, solves}, {"qr", qr, columns}, {"eigen", eigen, squares}, {"svd", svd, squares}};

int main(int argc, char **argv)
{
	int r = 0, times = argc == 4 ? atoi(argv[3]) : 0;
	n = argc == 4 ? atoi(argv[2]) : 0;
	while (r < 4 && argc == 4 && strcmp(argv[1], routines[r].name))
		r++;
	if (n < 1 || times < 1 || r == 4) {
		fprintf(stderr, "usage: lapack lu|qr|eigen|svd N TIMES\n");
		return 2;
	}
	size_t cells = (size_t)n * n;
	a = memory(cells, sizeof *a), kept = memory(cells, sizeof *kept), v = memory(n, sizeof *v), pivots = memory(n, sizeof *pivots), work = memory(1, sizeof *work);
	uint64_t seed = 88172645463325252u;
	for (size_t i = 0; i < cells; i++) {
		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		kept[i] = (double)(seed >> 11) / (1ull << 52) - 1;
	}
	if (r == 2)
		for (int j = 0; j < n; j++)
			for (int i = 0; i < j; i++)
				kept[i + (size_t)j * n] = kept[j + (size_t)i * n];
	if (r) { // the routine returns the fastest size of its workspace
		routines[r].run();
		lwork = (int)work[0];
		work = memory(lwork, sizeof *work);
	}
	double took = 0;
	for (int i = 0; i < times; i++) {
		memcpy(a, kept, cells * sizeof *a);
		double start = now();
		routines[r].run();
		took += now() - start;
		double error = info ? 0 : routines[r].error();
		if (info || !(error < 1e-15 * 100 * n)) {
			fprintf(stderr, "lapack: %s of order %d: info %d, relative error %.3g\n", argv[1], n, info, error);
			return 1;
		}
	}
	printf("{\"time\": %.9g}\n", took / times);
	return 0;
}
