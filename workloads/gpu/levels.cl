// The kernels of SHOC's levels 0 and 1, in the language of language.h. Sizes of groups are as level0.c and level1.c have them.

// Words are read in order: beside each other by the items of a group, one after the other by an item.
#define READS 256 // by an item

KERNEL read_words(const GLOBAL unsigned int *words, GLOBAL unsigned int *sums)
{
	int at = GROUP_X * WIDTH_X * READS + ITEM_X;
	unsigned int sum = 0;
	for (int i = 0; i < READS; i++)
		sum += words[at + i * WIDTH_X];
	sums[X] = sum;
}

KERNEL write_words(GLOBAL unsigned int *words, int n, unsigned int first)
{
	for (int i = GROUP_X * WIDTH_X * READS + ITEM_X, k = 0; k < READS && i < n; i += WIDTH_X, k++)
		words[i] = first + (unsigned int)i * 2654435761u;
}

// An item has so many chains of multiplying and adding, none of which waits for another.
#define CHAINS 16

KERNEL multiply_add(GLOBAL float *sums, int steps, float by, float plus)
{
	float a[CHAINS], sum = 0;
	for (int k = 0; k < CHAINS; k++)
		a[k] = (float)(X % 64) / 64.0f + (float)k / (float)CHAINS;
	for (int i = 0; i < steps; i++)
		for (int k = 0; k < CHAINS; k++)
			a[k] = a[k] * by + plus;
	for (int k = 0; k < CHAINS; k++)
		sum += a[k];
	sums[X] = sum;
}

// As little as can be seen to have been done.
KERNEL count(GLOBAL unsigned int *launches)
{
	if (X == 0 && Y == 0)
		launches[0]++;
}

// The Fourier transform of POINTS complex numbers, real and imaginary part by turns: a group does one, in shared memory, and leaves the numbers in order after each step
// (Stockham). turns are the roots of one, of which it needs the first half.
#define POINTS 512

KERNEL fft(const GLOBAL float *from, GLOBAL float *to, const GLOBAL float *turns)
{
	SHARED float re[POINTS];
	SHARED float im[POINTS];
	int i = ITEM_X, apart = POINTS / 2, base = GROUP_X * POINTS;
	re[i] = from[2 * (base + i)], im[i] = from[2 * (base + i) + 1];
	re[i + apart] = from[2 * (base + i + apart)], im[i + apart] = from[2 * (base + i + apart) + 1];
	BARRIER;
	for (int side = 1; side < POINTS; side *= 2) {
		int turn = i / side * side;
		float c = turns[2 * turn], s = turns[2 * turn + 1];
		float ar = re[i], ai = im[i], br = re[i + apart], bi = im[i + apart], dr = ar - br, di = ai - bi;
		BARRIER;
		re[i + turn] = ar + br, im[i + turn] = ai + bi;
		re[i + turn + side] = dr * c - di * s, im[i + turn + side] = dr * s + di * c;
		BARRIER;
	}
	to[2 * (base + i)] = re[i], to[2 * (base + i) + 1] = im[i];
	to[2 * (base + i + apart)] = re[i + apart], to[2 * (base + i + apart) + 1] = im[i + apart];
}

// The product of two square matrices: a group does a square of it, and shares what it needs of both. Beyond the edges are zeros.
#define TILE 16

KERNEL gemm(const GLOBAL float *a, const GLOBAL float *b, GLOBAL float *product, int n)
{
	SHARED float left[TILE * TILE];
	SHARED float right[TILE * TILE];
	int x = X, y = Y, tx = ITEM_X, ty = ITEM_Y;
	float sum = 0;
	for (int at = 0; at < n; at += TILE) {
		left[ty * TILE + tx] = y < n && at + tx < n ? a[y * n + at + tx] : 0;
		right[ty * TILE + tx] = x < n && at + ty < n ? b[(at + ty) * n + x] : 0;
		BARRIER;
		for (int k = 0; k < TILE; k++)
			sum += left[ty * TILE + k] * right[k * TILE + tx];
		BARRIER;
	}
	if (x < n && y < n)
		product[y * n + x] = sum;
}

// Forces between atoms by Lennard and Jones, in units of theirs: an item is an atom. Neighbour k of all atoms stands together.
KERNEL md(const GLOBAL float *places, const GLOBAL int *counts, const GLOBAL int *neighbours, GLOBAL float *forces, int n)
{
	if (X >= n || Y)
		return;
	float x = places[3 * X], y = places[3 * X + 1], z = places[3 * X + 2], fx = 0, fy = 0, fz = 0;
	for (int k = 0; k < counts[X]; k++) {
		int j = neighbours[k * n + X];
		float dx = x - places[3 * j], dy = y - places[3 * j + 1], dz = z - places[3 * j + 2];
		float near2 = 1.0f / (dx * dx + dy * dy + dz * dz), near6 = near2 * near2 * near2;
		float force = near2 * near6 * (48.0f * near6 - 24.0f);
		fx += force * dx, fy += force * dy, fz += force * dz;
	}
	forces[3 * X] = fx, forces[3 * X + 1] = fy, forces[3 * X + 2] = fz;
}

// A group's numbers become their sum.
#define SUMMERS 256
#define SUMMED 4096

KERNEL reduction(const GLOBAL float *from, GLOBAL float *to, int n)
{
	SHARED float sums[SUMMERS];
	int base = GROUP_X * SUMMED;
	float sum = 0;
	for (int i = base + ITEM_X; i < n && i < base + SUMMED; i += SUMMERS)
		sum += from[i];
	sums[ITEM_X] = sum;
	BARRIER;
	for (int by = SUMMERS / 2; by > 0; by /= 2) {
		if (ITEM_X < by)
			sums[ITEM_X] += sums[ITEM_X + by];
		BARRIER;
	}
	if (ITEM_X == 0)
		to[GROUP_X] = sums[0];
}

// The sum of all numbers before each: first of a group's alone, with the sum of all of them; when those sums are such sums themselves, they are added. An item has EACH
// numbers that stand together. from and to may be the same.
#define SCANNERS 256
#define EACH 4

KERNEL scan_groups(const GLOBAL unsigned int *from, GLOBAL unsigned int *to, GLOBAL unsigned int *sums, int n)
{
	SHARED unsigned int all[SCANNERS];
	unsigned int own[EACH], sum = 0;
	int base = X * EACH;
	for (int i = 0; i < EACH; i++) {
		own[i] = base + i < n ? from[base + i] : 0;
		sum += own[i];
	}
	all[ITEM_X] = sum;
	BARRIER;
	for (int by = 1; by < SCANNERS; by *= 2) {
		unsigned int more = ITEM_X >= by ? all[ITEM_X - by] : 0;
		BARRIER;
		all[ITEM_X] += more;
		BARRIER;
	}
	unsigned int before = all[ITEM_X] - sum;
	for (int i = 0; i < EACH; i++) {
		if (base + i < n)
			to[base + i] = before;
		before += own[i];
	}
	if (ITEM_X == SCANNERS - 1)
		sums[GROUP_X] = before;
}

KERNEL scan_add(GLOBAL unsigned int *to, const GLOBAL unsigned int *sums, int n)
{
	for (int i = X * EACH; i < n && i < X * EACH + EACH; i++)
		to[i] += sums[GROUP_X];
}

// Sorting by four bits at a time, from the lowest: how many keys of a group have each digit; where each group's begin among all, which is a scan; and there they go, in
// the order that they had. A group has SORTED keys, and when they go an item has those that stand together.
#define DIGITS 16
#define SORTERS 64
#define SORTED 1024
#define DIGIT(key) ((int)((key) >> shift & (DIGITS - 1)))

KERNEL sort_count(const GLOBAL unsigned int *keys, GLOBAL unsigned int *totals, int n, int shift)
{
	SHARED unsigned int counts[DIGITS * SORTERS];
	int item = ITEM_X, base = GROUP_X * SORTED, groups = (n + SORTED - 1) / SORTED;
	for (int d = 0; d < DIGITS; d++)
		counts[d * SORTERS + item] = 0;
	for (int i = base + item; i < n && i < base + SORTED; i += SORTERS)
		counts[DIGIT(keys[i]) * SORTERS + item]++;
	BARRIER;
	if (item < DIGITS) {
		unsigned int sum = 0;
		for (int i = 0; i < SORTERS; i++)
			sum += counts[item * SORTERS + i];
		totals[item * groups + GROUP_X] = sum;
	}
}

KERNEL sort_place(const GLOBAL unsigned int *keys, GLOBAL unsigned int *to, const GLOBAL unsigned int *starts, int n, int shift)
{
	SHARED unsigned int own[SORTED];
	SHARED unsigned int places[DIGITS * SORTERS];
	int item = ITEM_X, base = GROUP_X * SORTED, groups = (n + SORTED - 1) / SORTED, each = SORTED / SORTERS;
	int here = n - base < SORTED ? n - base : SORTED, from = item * each, end = from + each < here ? from + each : here;
	for (int i = item; i < here; i += SORTERS)
		own[i] = keys[base + i];
	for (int d = 0; d < DIGITS; d++)
		places[d * SORTERS + item] = 0;
	BARRIER;
	for (int i = from; i < end; i++)
		places[DIGIT(own[i]) * SORTERS + item]++;
	BARRIER;
	if (item < DIGITS) {
		unsigned int at = starts[item * groups + GROUP_X];
		for (int i = 0; i < SORTERS; i++) {
			unsigned int count = places[item * SORTERS + i];
			places[item * SORTERS + i] = at;
			at += count;
		}
	}
	BARRIER;
	for (int i = from; i < end; i++)
		to[places[DIGIT(own[i]) * SORTERS + item]++] = own[i];
}

// A sparse matrix by a vector: the numbers that are not 0 stand row after row, with their columns. A group does a row.
#define ROW 32

KERNEL spmv(const GLOBAL int *starts, const GLOBAL int *columns, const GLOBAL float *values, const GLOBAL float *vector, GLOBAL float *product)
{
	SHARED float sums[ROW];
	float sum = 0;
	for (int i = starts[GROUP_X] + ITEM_X; i < starts[GROUP_X + 1]; i += ROW)
		sum += values[i] * vector[columns[i]];
	sums[ITEM_X] = sum;
	BARRIER;
	for (int by = ROW / 2; by > 0; by /= 2) {
		if (ITEM_X < by)
			sums[ITEM_X] += sums[ITEM_X + by];
		BARRIER;
	}
	if (ITEM_X == 0)
		product[GROUP_X] = sums[0];
}

KERNEL triad(GLOBAL float *a, const GLOBAL float *b, const GLOBAL float *c, float by, int n)
{
	if (X < n)
		a[X] = b[X] + by * c[X];
}
