// The kernels of the particle filter, in the language of language.h.

// A particle filter that follows a disc through a film (Rodinia's particlefilter): an item is a particle.
KERNEL particle_move(GLOBAL float *x, GLOBAL float *y, GLOBAL unsigned int *seeds, int n)
{
	if (X >= n || Y)
		return;
	unsigned int s = seeds[X];
	float sums[2] = {0, 0};
	for (int d = 0; d < 2; d++)
		for (int i = 0; i < 4; i++) { // four numbers that are as likely one as the other make one that is nearly normal
			s = s * 1664525u + 1013904223u;
			sums[d] += (float)(s >> 8) / 16777216.0f - 0.5f;
		}
	seeds[X] = s;
	x[X] += 1 + 2.5f * sums[0];
	y[X] += -2 + 1.0f * sums[1];
}

KERNEL particle_weigh(const GLOBAL unsigned char *frame, const GLOBAL float *x, const GLOBAL float *y, GLOBAL float *weights, int n, int width, int height, int radius)
{
	if (X >= n || Y)
		return;
	float sum = 0;
	int points = 0;
	for (int dy = -radius; dy <= radius; dy++)
		for (int dx = -radius; dx <= radius; dx++) {
			if (dx * dx + dy * dy > radius * radius)
				continue;
			int px = (int)(x[X] + 0.5f) + dx, py = (int)(y[X] + 0.5f) + dy;
			float value = px < 0 || py < 0 || px >= width || py >= height ? 0 : (float)frame[py * width + px];
			sum += ((value - 100) * (value - 100) - (value - 228) * (value - 228)) / 50.0f;
			points++;
		}
	weights[X] = sum / (float)points;
}

// particle_choose takes for each particle the one at its share of the sum of weights.
KERNEL particle_choose(const GLOBAL float *sums, const GLOBAL float *x, const GLOBAL float *y, GLOBAL float *nextx, GLOBAL float *nexty, int n, float first)
{
	if (X >= n || Y)
		return;
	float at = first + (float)X / (float)n;
	int low = 0, high = n - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		if (sums[middle] >= at)
			high = middle;
		else
			low = middle + 1;
	}
	nextx[X] = x[low];
	nexty[X] = y[low];
}
