// A stencil of seven points, applied 100 times to the cells, like Parboil's stencil. That has 512 × 512 × 64 cells by default and 128 × 128 × 32 as its
// small input.
#include <math.h>
#include <string.h>

#include "apps.h"
#include "device.h"

enum { STEPS = 100 };
static const float middle = 1.0f / 6 / 36 * 30, side = 1.0f / 36;

static int nx, ny, nz;
static size_t cells;
static float *first, *result;

static void begin(int size)
{
	if (size > 5792)
		fail("size: %d: must be at most 5792 cells wide, so that cells can be counted", size);
	nx = ny = size < 4 ? 4 : size;
	nz = nx / 4 > 64 ? 64 : nx / 4 < 3 ? 3 : nx / 4;
	cells = (size_t)nx * ny * nz;
	first = memory(sizeof *first * cells);
	result = memory(sizeof *first * cells);
	for (size_t i = 0; i < cells; i++)
		first[i] = random_number();
}

static void run(int times)
{
	buffer at[2] = {device_buffer(sizeof *first * cells), device_buffer(sizeof *first * cells)};
	for (int t = 0; t < times; t++) {
		device_write(at[0], first, sizeof *first * cells); // the cells of the rim do not change, in either buffer
		device_write(at[1], first, sizeof *first * cells);
		for (int s = 0; s < STEPS; s++)
			LAUNCH("stencil", nx, ny, 16, 4, BUFFER(at[s % 2]), BUFFER(at[1 - s % 2]), INT(nx), INT(ny), INT(nz), FLOAT(middle), FLOAT(side));
		device_read(result, at[STEPS % 2], sizeof *first * cells);
		repeated();
	}
}

static void check(void)
{
	double *from = memory(sizeof *from * cells), *to = memory(sizeof *to * cells);
	for (size_t i = 0; i < cells; i++)
		from[i] = to[i] = first[i];
	for (int s = 0; s < STEPS; s++) {
		for (int z = 1; z < nz - 1; z++)
			for (int y = 1; y < ny - 1; y++)
				for (int x = 1; x < nx - 1; x++) {
					size_t i = ((size_t)z * ny + y) * nx + x, plane = (size_t)nx * ny;
					to[i] = middle * from[i] + side * (from[i - 1] + from[i + 1] + from[i - nx] + from[i + nx] + from[i - plane] + from[i + plane]);
				}
		double *swap = from;
		from = to, to = swap;
	}
	for (size_t i = 0; i < cells; i++)
		near("the cells", i, result[i], from[i], 1, 1e-4);
}

const struct app stencil = {"stencil", "stencil", 128, 512, begin, run, check, NULL, NULL};
