// SHOC's level 1: the building blocks of many applications. The usual sizes are those of SHOC's first class. Each run copies the input to the device and
// the output back. The figures use the device's own time of kernels, except triad's.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps.h"
#include "device.h"

static int n;
static float *a, *b, *result;

// numbers are random ones from 0 to 1.
static float *numbers(size_t count)
{
	float *all = memory(sizeof *all * count);
	for (size_t i = 0; i < count; i++)
		all[i] = random_number();
	return all;
}

// filled is a buffer with them, or any others.
static buffer filled(const void *from, size_t bytes)
{
	buffer to = device_buffer(bytes);
	device_write(to, from, bytes);
	return to;
}

// Fourier transforms of 512 points each.
enum { POINTS = 512 }; // as in the kernel
static float turns[2 * POINTS]; // the roots of one: cosine and sine of each

static void begin_fft(int size)
{
	n = size;
	a = numbers((size_t)n * POINTS * 2), result = memory(sizeof *result * n * POINTS * 2);
	for (int i = 0; i < POINTS; i++)
		turns[2 * i] = cos(2 * M_PI * i / POINTS), turns[2 * i + 1] = -sin(2 * M_PI * i / POINTS);
}

static void run_fft(int times)
{
	size_t bytes = sizeof *a * n * POINTS * 2;
	buffer from = device_buffer(bytes), to = device_buffer(bytes), roots = filled(turns, sizeof turns);
	for (int t = 0; t < times; t++) {
		device_write(from, a, bytes);
		LAUNCH("fft", (size_t)n * POINTS / 2, 1, POINTS / 2, 1, BUFFER(from), BUFFER(to), BUFFER(roots));
		device_read(result, to, bytes);
	}
}

// check_fft sums by the definition of a transform.
static void check_fft(void)
{
	double c[POINTS], s[POINTS];
	for (int i = 0; i < POINTS; i++)
		c[i] = cos(2 * M_PI * i / POINTS), s[i] = -sin(2 * M_PI * i / POINTS);
	for (int f = 0; f < n; f++)
		for (int k = 0; k < POINTS; k++) {
			const float *x = a + (size_t)f * POINTS * 2, *got = result + ((size_t)f * POINTS + k) * 2;
			double re = 0, im = 0;
			for (int i = 0; i < POINTS; i++) {
				int turn = i * k % POINTS;
				re += x[2 * i] * c[turn] - x[2 * i + 1] * s[turn], im += x[2 * i] * s[turn] + x[2 * i + 1] * c[turn];
			}
			near("the transforms, real", f * POINTS + k, got[0], re, POINTS, 1e-6);
			near("the transforms, imaginary", f * POINTS + k, got[1], im, POINTS, 1e-6);
		}
}

// By convention, a transform counts as 5 n log2(n) operations.
static double fft_rate(int times) { return times * 5.0 * n * POINTS * log2(POINTS) / spent.kernels / 1e9; }

// The product of two matrices of n rows.
enum { TILE = 16, ROWS_MOST = 32768 }; // TILE as in the kernel; ROWS_MOST so that elements can be counted

static void begin_gemm(int size)
{
	if (size > ROWS_MOST)
		fail("size: %d: must be at most %d rows", size, ROWS_MOST);
	n = size;
	a = numbers((size_t)n * n), b = numbers((size_t)n * n), result = memory(sizeof *result * n * n);
}

static void run_gemm(int times)
{
	size_t bytes = sizeof *a * n * n;
	buffer left = device_buffer(bytes), right = device_buffer(bytes), product = device_buffer(bytes);
	for (int t = 0; t < times; t++) {
		device_write(left, a, bytes), device_write(right, b, bytes);
		LAUNCH("gemm", n, n, TILE, TILE, BUFFER(left), BUFFER(right), BUFFER(product), INT(n));
		device_read(result, product, bytes);
	}
}

// check_gemm adds multiples of rows.
static void check_gemm(void)
{
	double *row = memory(sizeof *row * n);
	for (int i = 0; i < n; i++) {
		memset(row, 0, sizeof *row * n);
		for (int k = 0; k < n; k++)
			for (int j = 0; j < n; j++)
				row[j] += (double)a[(size_t)i * n + k] * b[(size_t)k * n + j];
		for (int j = 0; j < n; j++)
			near("the product", i * n + j, result[(size_t)i * n + j], row[j], n, 1e-5);
	}
}

static double gemm_rate(int times) { return times * 2.0 * n * n * n / spent.kernels / 1e9; }

// Forces between atoms in a grid, each slightly displaced. Atoms within CUTOFF grid steps are neighbours, which a list holds.
enum { CUTOFF = 3, AROUND = 2 * CUTOFF + 1, CUBE = AROUND * AROUND * AROUND }; // atoms that are further apart in the grid are also further apart in space
static int side, *counts, *list, most;
static double pairs;

// neighbours_of finds an atom's neighbours.
static int neighbours_of(int i, int *found)
{
	int count = 0, x = i % side, y = i / side % side, z = i / side / side;
	for (int k = 0; k < CUBE; k++) {
		int jx = x + k % AROUND - CUTOFF, jy = y + k / AROUND % AROUND - CUTOFF, jz = z + k / AROUND / AROUND - CUTOFF, j = (jz * side + jy) * side + jx;
		if (jx < 0 || jy < 0 || jz < 0 || jx >= side || jy >= side || jz >= side || j >= n || j == i)
			continue;
		double dx = a[3 * i] - a[3 * j], dy = a[3 * i + 1] - a[3 * j + 1], dz = a[3 * i + 2] - a[3 * j + 2];
		if (dx * dx + dy * dy + dz * dz < CUTOFF * CUTOFF)
			found[count++] = j;
	}
	return count;
}

static void begin_md(int size)
{
	int found[CUBE];
	n = size, side = ceil(cbrt(n));
	a = memory(sizeof *a * n * 3), result = memory(sizeof *result * n * 3), counts = memory(sizeof *counts * n);
	for (int i = 0; i < 3 * n; i++)
		a[i] = (i % 3 == 0 ? i / 3 % side : i % 3 == 1 ? i / 3 / side % side : i / 3 / side / side) + 0.4f * (random_number() - 0.5f);
	for (int i = 0; i < n; i++) {
		counts[i] = neighbours_of(i, found);
		pairs += counts[i];
		most = counts[i] > most ? counts[i] : most;
	}
	if (!most)
		fail("size: %d: must be at least two atoms", size);
	list = memory(sizeof *list * n * most);
	for (int i = 0; i < n; i++)
		for (int k = neighbours_of(i, found) - 1; k >= 0; k--)
			list[k * n + i] = found[k];
}

static void run_md(int times)
{
	size_t bytes = sizeof *a * n * 3;
	buffer places = device_buffer(bytes), forces = device_buffer(bytes), c = filled(counts, sizeof *counts * n), l = filled(list, sizeof *list * n * most);
	for (int t = 0; t < times; t++) {
		device_write(places, a, bytes);
		LAUNCH("md", n, 1, 64, 1, BUFFER(places), BUFFER(c), BUFFER(l), BUFFER(forces), INT(n));
		device_read(result, forces, bytes);
	}
}

// check_md uses the grid, not the list, and adds the force of a pair to both atoms.
static void check_md(void)
{
	int found[CUBE];
	double *want = memory(sizeof *want * n * 3), greatest = 0;
	for (int i = 0; i < n; i++)
		for (int k = neighbours_of(i, found) - 1; k >= 0; k--) {
			double d[3], r2 = 0;
			for (int c = 0; c < 3; c++)
				d[c] = (double)a[3 * i + c] - a[3 * found[k] + c], r2 += d[c] * d[c];
			for (int c = 0; c < 3 && i < found[k]; c++) {
				double force = (48 / pow(r2, 7) - 24 / pow(r2, 4)) * d[c];
				want[3 * i + c] += force, want[3 * found[k] + c] -= force;
			}
		}
	for (int i = 0; i < 3 * n; i++)
		greatest = fmax(greatest, fabs(want[i]));
	for (int i = 0; i < 3 * n; i++)
		near("the forces", i, result[i], want[i], greatest, 1e-5);
}

// The kernel has 22 operations for each atom and neighbour, with the division as one.
static double md_rate(int times) { return times * 22 * pairs / spent.kernels / 1e9; }

// In the following, n counts numbers, and size KiB.
static void begin_numbers(int size)
{
	n = size * (1024 / (int)sizeof *a);
	a = numbers(n), b = numbers(n), result = memory(sizeof *result * n);
}

// The sum of all.
enum { SUMMERS = 256, SUMMED = 4096 }; // as in the kernel

static void run_reduction(int times)
{
	int groups = (n + SUMMED - 1) / SUMMED; // at most 4096, which one group sums
	buffer from = device_buffer(sizeof *a * n), sums = device_buffer(sizeof *a * groups), all = device_buffer(sizeof *a);
	for (int t = 0; t < times; t++) {
		device_write(from, a, sizeof *a * n);
		LAUNCH("reduction", (size_t)groups * SUMMERS, 1, SUMMERS, 1, BUFFER(from), BUFFER(sums), INT(n));
		LAUNCH("reduction", SUMMERS, 1, SUMMERS, 1, BUFFER(sums), BUFFER(all), INT(groups));
		device_read(result, all, sizeof *a);
	}
}

static void check_reduction(void)
{
	double want = 0;
	for (int i = 0; i < n; i++)
		want += a[i];
	near("the sum", 0, result[0], want, want, 1e-6);
}

// Counts the least bytes to read and write: each input number once, and each output number once.
static double reduction_rate(int times) { return (double)times * sizeof *a * n / spent.kernels / 1e9; }

// For each number, the sum of all numbers before it. The numbers are integers, which are exact and wrap around.
enum { SCANNERS = 256, SCANNED = 1024, LEVELS = 3 }; // as in the kernels; LEVELS is the number of scans of sums at the greatest size
static uint32_t *keys, *sorted;
static buffer sums[LEVELS]; // sums of each group of numbers, of each group of those sums, and so on

static void begin_keys(int size)
{
	n = size * (1024 / (int)sizeof *keys);
	keys = memory(sizeof *keys * n), sorted = memory(sizeof *sorted * n);
	for (int i = 0; i < n; i++)
		keys[i] = (uint32_t)(random_number() * 65536) << 16 ^ (uint32_t)(random_number() * 65536);
}

static void make_sums(int count)
{
	for (int l = 0; l < LEVELS; l++) {
		count = (count + SCANNED - 1) / SCANNED;
		sums[l] = device_buffer(sizeof *keys * count);
	}
}

static void scan_all(buffer from, buffer to, int count, int level)
{
	int groups = (count + SCANNED - 1) / SCANNED;
	LAUNCH("scan_groups", (size_t)groups * SCANNERS, 1, SCANNERS, 1, BUFFER(from), BUFFER(to), BUFFER(sums[level]), INT(count));
	if (groups == 1)
		return;
	scan_all(sums[level], sums[level], groups, level + 1);
	LAUNCH("scan_add", (size_t)groups * SCANNERS, 1, SCANNERS, 1, BUFFER(to), BUFFER(sums[level]), INT(count));
}

static void run_scan(int times)
{
	size_t bytes = sizeof *keys * n;
	buffer from = device_buffer(bytes), to = device_buffer(bytes);
	make_sums(n);
	for (int t = 0; t < times; t++) {
		device_write(from, keys, bytes);
		scan_all(from, to, n, 0);
		device_read(sorted, to, bytes);
	}
}

static void check_scan(void)
{
	uint32_t want = 0;
	for (int i = 0; i < n; i++) {
		near("the sums", i, sorted[i], want, 1, 0);
		want += keys[i];
	}
}

static double scan_rate(int times) { return 2.0 * times * sizeof *keys * n / spent.kernels / 1e9; }

// Sorts keys.
enum { DIGITS = 16, BITS = 4, SORTERS = 64, SORTED = 1024 }; // as in the kernels

static void run_sort(int times)
{
	size_t bytes = sizeof *keys * n, groups = (n + SORTED - 1) / SORTED;
	buffer at[2] = {device_buffer(bytes), device_buffer(bytes)}, starts = device_buffer(sizeof *keys * groups * DIGITS);
	make_sums(groups * DIGITS);
	for (int t = 0; t < times; t++) {
		device_write(at[0], keys, bytes);
		for (int shift = 0, from = 0; shift < 32; shift += BITS, from = 1 - from) { // it ends in the first buffer
			LAUNCH("sort_count", groups * SORTERS, 1, SORTERS, 1, BUFFER(at[from]), BUFFER(starts), INT(n), INT(shift));
			scan_all(starts, starts, groups * DIGITS, 0);
			LAUNCH("sort_place", groups * SORTERS, 1, SORTERS, 1, BUFFER(at[from]), BUFFER(at[1 - from]), BUFFER(starts), INT(n), INT(shift));
		}
		device_read(sorted, at[0], bytes);
	}
}

static int by_size(const void *left, const void *right)
{
	uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
	return (l > r) - (l < r);
}

static void check_sort(void)
{
	qsort(keys, n, sizeof *keys, by_size);
	for (int i = 0; i < n; i++)
		near("the keys in order", i, sorted[i], keys[i], 1, 0);
}

// As for a scan: each key counts as read once and written once, however often it moves.
static double sort_rate(int times) { return 2.0 * times * sizeof *keys * n / spent.kernels / 1e9; }

// A sparse matrix times a vector: one number in a hundred exists in each row.
enum { ROW = 32, APART = 100 }; // ROW as in the kernel
static int *starts, *columns;

static void begin_spmv(int size)
{
	size_t room = (size_t)size * (size / 8 + 8); // eight times the expected number, and a few more for small rows
	n = size;
	starts = memory(sizeof *starts * (n + 1)), columns = memory(sizeof *columns * room);
	for (int row = 0; row < n; row++) {
		starts[row + 1] = starts[row];
		for (int c = (2 * APART - 1) * random_number(); c < n && starts[row + 1] < (int)room; c += 1 + (2 * APART - 1) * random_number())
			columns[starts[row + 1]++] = c;
	}
	a = numbers(starts[n] + 1), b = numbers(n), result = memory(sizeof *result * n);
}

static void run_spmv(int times)
{
	size_t there = starts[n] + 1; // so that no buffer is empty
	buffer s = filled(starts, sizeof *starts * (n + 1)), c = filled(columns, sizeof *columns * there), values = filled(a, sizeof *a * there);
	buffer vector = device_buffer(sizeof *b * n), product = device_buffer(sizeof *result * n);
	for (int t = 0; t < times; t++) {
		device_write(vector, b, sizeof *b * n);
		LAUNCH("spmv", (size_t)n * ROW, 1, ROW, 1, BUFFER(s), BUFFER(c), BUFFER(values), BUFFER(vector), BUFFER(product));
		device_read(result, product, sizeof *result * n);
	}
}

// check_spmv expands a whole row with its zeros.
static void check_spmv(void)
{
	double *row = memory(sizeof *row * n);
	for (int r = 0; r < n; r++) {
		double want = 0;
		memset(row, 0, sizeof *row * n);
		for (int i = starts[r]; i < starts[r + 1]; i++)
			row[columns[i]] = a[i];
		for (int c = 0; c < n; c++)
			want += row[c] * b[c];
		near("the product with the vector", r, result[r], want, n / APART + 1, 1e-5);
	}
}

static double spmv_rate(int times) { return times * 2.0 * starts[n] / spent.kernels / 1e9; }

// Adds a vector and a multiple of another, including the copies.
static const float by = 1.75f;

static void run_triad(int times)
{
	size_t bytes = sizeof *a * n;
	buffer to = device_buffer(bytes), first = device_buffer(bytes), second = device_buffer(bytes);
	for (int t = 0; t < times; t++) {
		device_write(first, a, bytes), device_write(second, b, bytes);
		LAUNCH("triad", n, 1, 256, 1, BUFFER(to), BUFFER(first), BUFFER(second), FLOAT(by), INT(n));
		device_read(result, to, bytes);
	}
}

static void check_triad(void)
{
	for (int i = 0; i < n; i++)
		near("the triad", i, result[i], a[i] + (double)by * b[i], 1, 1e-6);
}

// Counts the bytes of the three vectors, and the device's own time of kernels and copies.
static double triad_rate(int times) { return 3.0 * times * sizeof *a * n / (spent.kernels + spent.copying) / 1e9; }

const struct app fft = {"fft", "levels", 64, 256, begin_fft, run_fft, check_fft, "arithmetic", fft_rate};
const struct app gemm = {"gemm", "levels", 128, 256, begin_gemm, run_gemm, check_gemm, "arithmetic", gemm_rate};
const struct app md = {"md", "levels", 2048, 12288, begin_md, run_md, check_md, "arithmetic", md_rate};
const struct app reduction = {"reduction", "levels", 1024, 1024, begin_numbers, run_reduction, check_reduction, "bandwidth", reduction_rate};
const struct app scan = {"scan", "levels", 1024, 1024, begin_keys, run_scan, check_scan, "bandwidth", scan_rate};
const struct app sort = {"sort", "levels", 256, 1024, begin_keys, run_sort, check_sort, "bandwidth", sort_rate};
const struct app spmv = {"spmv", "levels", 1024, 1024, begin_spmv, run_spmv, check_spmv, "arithmetic", spmv_rate};
const struct app triad = {"triad", "levels", 1024, 16384, begin_numbers, run_triad, check_triad, "bandwidth", triad_rate};
