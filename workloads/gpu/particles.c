// A particle filter that follows a disc through a film of 10 pictures of 128 × 128 points, like Rodinia's particlefilter, which has 1,000 particles by
// default.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "apps.h"
#include "device.h"

enum { WIDTH = 128, HEIGHT = 128, FRAMES = 10, RADIUS = 5 };

static int n;
static unsigned char film[FRAMES][WIDTH * HEIGHT];
static unsigned *seeds;
static float *x, *y, *weights, *sums, estimates[FRAMES][2];

static void begin(int size)
{
	n = size;
	x = memory(sizeof *x * n), y = memory(sizeof *y * n), weights = memory(sizeof *weights * n), sums = memory(sizeof *sums * n), seeds = memory(sizeof *seeds * n);
	for (int f = 0; f < FRAMES; f++) // the disc goes one point to the right and two up for each picture, with noise
		for (int py = 0; py < HEIGHT; py++)
			for (int px = 0; px < WIDTH; px++) {
				int dx = px - (WIDTH / 2 + f), dy = py - (HEIGHT / 2 - 2 * f);
				film[f][py * WIDTH + px] = (dx * dx + dy * dy <= RADIUS * RADIUS ? 218 : 90) + (int)(20 * random_number());
			}
}

// start puts all particles at the disc's place one picture before the first.
static void start(void)
{
	for (int i = 0; i < n; i++) {
		x[i] = WIDTH / 2 - 1, y[i] = HEIGHT / 2 + 2;
		seeds[i] = 2654435761u * (i + 1);
	}
}

// estimate turns the points of all particles into weights, their sums and the estimated place of the disc.
static void estimate(int f)
{
	float most = weights[0];
	double all = 0, ex = 0, ey = 0, sum = 0;
	for (int i = 1; i < n; i++)
		most = fmaxf(most, weights[i]);
	for (int i = 0; i < n; i++)
		all += weights[i] = expf(weights[i] - most);
	for (int i = 0; i < n; i++) {
		weights[i] /= all;
		ex += weights[i] * x[i], ey += weights[i] * y[i];
		sums[i] = sum += weights[i];
	}
	estimates[f][0] = ex, estimates[f][1] = ey;
}

static void run(int times)
{
	size_t bytes = sizeof(float) * n;
	buffer frame = device_buffer(WIDTH * HEIGHT), s = device_buffer(sizeof *seeds * n), w = device_buffer(bytes), c = device_buffer(bytes);
	buffer px[2] = {device_buffer(bytes), device_buffer(bytes)}, py[2] = {device_buffer(bytes), device_buffer(bytes)};
	for (int t = 0; t < times; t++) {
		start();
		device_write(px[0], x, bytes), device_write(py[0], y, bytes), device_write(s, seeds, sizeof *seeds * n);
		for (int f = 0; f < FRAMES; f++) {
			int here = f % 2, next = 1 - here;
			device_write(frame, film[f], WIDTH * HEIGHT);
			LAUNCH("particle_move", n, 1, 64, 1, BUFFER(px[here]), BUFFER(py[here]), BUFFER(s), INT(n));
			LAUNCH("particle_weigh", n, 1, 64, 1, BUFFER(frame), BUFFER(px[here]), BUFFER(py[here]), BUFFER(w), INT(n), INT(WIDTH), INT(HEIGHT), INT(RADIUS));
			device_read(weights, w, bytes), device_read(x, px[here], bytes), device_read(y, py[here], bytes);
			estimate(f);
			device_write(c, sums, bytes);
			LAUNCH("particle_choose", n, 1, 64, 1, BUFFER(c), BUFFER(px[here]), BUFFER(py[here]), BUFFER(px[next]), BUFFER(py[next]), INT(n), FLOAT(0.5f / n));
		}
		device_finish();
		repeated();
	}
}

// check follows the disc in another way: it moves, weighs and chooses the same particles in double precision. Rounding may choose other particles, so
// check compares the estimated place of the disc: to a twentieth of a point with the device's estimate, and to one point with the real place.
static void check(void)
{
	double *at = memory(sizeof *at * n), *up = memory(sizeof *up * n), *w = memory(sizeof *w * n), *nx = memory(sizeof *nx * n), *ny = memory(sizeof *ny * n);
	start();
	for (int i = 0; i < n; i++)
		at[i] = x[i], up[i] = y[i];
	for (int f = 0; f < FRAMES; f++) {
		double most = -INFINITY, all = 0, ex = 0, ey = 0;
		for (int i = 0; i < n; i++) {
			double sum[2] = {0, 0}, points = 0, value = 0;
			for (int d = 0; d < 8; d++) {
				seeds[i] = seeds[i] * 1664525u + 1013904223u;
				sum[d / 4] += (seeds[i] >> 8) / 16777216.0 - 0.5;
			}
			at[i] += 1 + 2.5 * sum[0], up[i] += -2 + sum[1];
			for (int dy = -RADIUS; dy <= RADIUS; dy++)
				for (int dx = -RADIUS; dx <= RADIUS; dx++) {
					if (dx * dx + dy * dy > RADIUS * RADIUS)
						continue;
					int px = (int)(at[i] + 0.5) + dx, py = (int)(up[i] + 0.5) + dy;
					double v = px < 0 || py < 0 || px >= WIDTH || py >= HEIGHT ? 0 : film[f][py * WIDTH + px];
					value += (pow(v - 100, 2) - pow(v - 228, 2)) / 50, points++;
				}
			most = fmax(most, w[i] = value / points);
		}
		for (int i = 0; i < n; i++)
			all += w[i] = exp(w[i] - most);
		for (int i = 0; i < n; i++)
			ex += w[i] / all * at[i], ey += w[i] / all * up[i];
		near("the disc's place, to the right", f, estimates[f][0], ex, 1, 0.05);
		near("the disc's place, down", f, estimates[f][1], ey, 1, 0.05);
		if (n >= 1000) {
			near("the disc's place against where it is, to the right", f, ex, WIDTH / 2 + f, 1, 1);
			near("the disc's place against where it is, down", f, ey, HEIGHT / 2 - 2 * f, 1, 1);
		}
		double sum = w[0] / all;
		for (int i = 0, j = 0; i < n; i++) {
			while (j < n - 1 && sum < (i + 0.5) / n)
				sum += w[++j] / all;
			nx[i] = at[j], ny[i] = up[j];
		}
		memcpy(at, nx, sizeof *at * n), memcpy(up, ny, sizeof *up * n);
	}
}

const struct app particles = {"particle-filter", "particles", 1000, 1000, begin, run, check, NULL, NULL};
