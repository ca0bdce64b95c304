// LU decomposition of a diagonally dominant matrix, like Rodinia's lud, which has 256 rows by default.
#include <math.h>
#include <string.h>

#include "apps.h"
#include "device.h"

enum { BLOCK = 16 }; // as in the kernels

static int n;
static float *a, *result;

static void begin(int size)
{
	if (size > 46340)
		fail("size: %d: must be at most 46340 rows, so that elements can be counted", size);
	n = size;
	a = memory(sizeof *a * n * n);
	result = memory(sizeof *a * n * n);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			a[i * n + j] = random_number() + (i == j) * n;
}

static void run(int times)
{
	buffer m = device_buffer(sizeof *a * n * n);
	for (int t = 0; t < times; t++) {
		device_write(m, a, sizeof *a * n * n);
		for (int at = 0; at < n; at += BLOCK) {
			LAUNCH("lud_diagonal", 1, 1, 1, 1, BUFFER(m), INT(n), INT(at));
			int rest = n - at - BLOCK;
			if (rest <= 0)
				break;
			LAUNCH("lud_sides", rest, 2, BLOCK, 1, BUFFER(m), INT(n), INT(at));
			LAUNCH("lud_rest", rest, rest, BLOCK, BLOCK, BUFFER(m), INT(n), INT(at));
		}
		device_read(result, m, sizeof *a * n * n);
		repeated();
	}
}

// check decomposes row by row, as in a textbook.
static void check(void)
{
	double *want = memory(sizeof *want * n * n), most = 0;
	for (int i = 0; i < n * n; i++)
		want[i] = a[i];
	for (int k = 0; k < n; k++)
		for (int i = k + 1; i < n; i++) {
			want[i * n + k] /= want[k * n + k];
			for (int j = k + 1; j < n; j++)
				want[i * n + j] -= want[i * n + k] * want[k * n + j];
		}
	for (int i = 0; i < n * n; i++)
		most = fmax(most, fabs(want[i]));
	for (int i = 0; i < n * n; i++)
		near("the factors", i, result[i], want[i], most, 1e-5);
}

const struct app lud = {"lud", "lud", 256, 256, begin, run, check, NULL, NULL};
