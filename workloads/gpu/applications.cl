// The kernels of the applications, in the language of language.h.

// LU decomposition in place, without pivots (Rodinia's lud): blocks of BLOCK rows, from the top left. One item does the block on the diagonal, one each a row or a
// column of the blocks beside and below it, and one each an element of the rest.
#define BLOCK 16

KERNEL lud_diagonal(GLOBAL float *a, int n, int at)
{
	int end = at + BLOCK < n ? at + BLOCK : n;
	if (X || Y)
		return;
	for (int k = at; k < end; k++)
		for (int i = k + 1; i < end; i++) {
			float f = a[i * n + k] /= a[k * n + k];
			for (int j = k + 1; j < end; j++)
				a[i * n + j] -= f * a[k * n + j];
		}
}

KERNEL lud_sides(GLOBAL float *a, int n, int at)
{
	int end = at + BLOCK, i = end + X;
	if (i >= n || Y > 1)
		return;
	if (Y) // a column, right of the diagonal's block
		for (int r = at + 1; r < end; r++)
			for (int k = at; k < r; k++)
				a[r * n + i] -= a[r * n + k] * a[k * n + i];
	else // a row, below it
		for (int c = at; c < end; c++) {
			for (int k = at; k < c; k++)
				a[i * n + c] -= a[i * n + k] * a[k * n + c];
			a[i * n + c] /= a[c * n + c];
		}
}

KERNEL lud_rest(GLOBAL float *a, int n, int at)
{
	int j = at + BLOCK + X, i = at + BLOCK + Y;
	if (i >= n || j >= n)
		return;
	float sum = 0;
	for (int k = at; k < at + BLOCK; k++)
		sum += a[i * n + k] * a[k * n + j];
	a[i * n + j] -= sum;
}

// A stencil of seven points in three dimensions (Parboil's stencil): an item is a column of cells.
KERNEL stencil(const GLOBAL float *from, GLOBAL float *to, int nx, int ny, int nz, float middle, float side)
{
	int x = X, y = Y;
	if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
		return;
	int plane = nx * ny;
	for (int z = 1; z < nz - 1; z++) {
		int i = x + nx * y + plane * z;
		to[i] = middle * from[i] + side * (from[i - 1] + from[i + 1] + from[i - nx] + from[i + nx] + from[i - plane] + from[i + plane]);
	}
}

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

// LeNet, for images of 28 × 28: a convolution, the greatest of each four, both again, three full layers. Sizes are of a batch: X is within a sample, Y the sample.

// conv has kernels of 5 × 5 over channels of side × side with pad zeros around; what is below 0 becomes 0.
KERNEL conv(const GLOBAL float *in, const GLOBAL float *w, const GLOBAL float *bias, GLOBAL float *out, int channels, int side, int pad, int filters, int samples)
{
	int o = side + 2 * pad - 4, f = X / (o * o), r = X / o % o, c = X % o;
	if (f >= filters || Y >= samples)
		return;
	float sum = bias[f];
	for (int k = 0; k < channels; k++)
		for (int i = 0; i < 5; i++)
			for (int j = 0; j < 5; j++) {
				int y = r + i - pad, x = c + j - pad;
				if (y >= 0 && x >= 0 && y < side && x < side)
					sum += in[((Y * channels + k) * side + y) * side + x] * w[((f * channels + k) * 5 + i) * 5 + j];
			}
	out[(Y * filters + f) * o * o + r * o + c] = sum > 0 ? sum : 0;
}

KERNEL pool(const GLOBAL float *in, GLOBAL float *out, int channels, int side, int samples)
{
	int o = side / 2, k = X / (o * o), r = X / o % o, c = X % o;
	if (k >= channels || Y >= samples)
		return;
	const GLOBAL float *p = in + ((Y * channels + k) * side + 2 * r) * side + 2 * c;
	float m = p[0] > p[1] ? p[0] : p[1], l = p[side] > p[side + 1] ? p[side] : p[side + 1];
	out[(Y * channels + k) * o * o + r * o + c] = m > l ? m : l;
}

KERNEL full(const GLOBAL float *in, const GLOBAL float *w, const GLOBAL float *bias, GLOBAL float *out, int ins, int outs, int floor, int samples)
{
	if (X >= outs || Y >= samples)
		return;
	float sum = bias[X];
	for (int i = 0; i < ins; i++)
		sum += in[Y * ins + i] * w[X * ins + i];
	out[Y * outs + X] = floor && sum < 0 ? 0 : sum;
}

// loss turns a sample's outputs into what they are to change by: its probabilities, less one for the right answer.
KERNEL loss(const GLOBAL float *out, const GLOBAL int *labels, GLOBAL float *d, int outs, int samples)
{
	if (X || Y >= samples)
		return;
	float most = out[Y * outs], sum = 0;
	for (int i = 1; i < outs; i++)
		most = out[Y * outs + i] > most ? out[Y * outs + i] : most;
	for (int i = 0; i < outs; i++)
		sum += exp(out[Y * outs + i] - most);
	for (int i = 0; i < outs; i++)
		d[Y * outs + i] = (exp(out[Y * outs + i] - most) / sum - (labels[Y] == i ? 1.0f : 0.0f)) / (float)samples;
}

// full_back is what a full layer's inputs are to change by; of inputs that were cut off at 0, nothing.
KERNEL full_back(const GLOBAL float *d, const GLOBAL float *w, const GLOBAL float *in, GLOBAL float *din, int ins, int outs, int samples)
{
	if (X >= ins || Y >= samples)
		return;
	float sum = 0;
	for (int o = 0; o < outs; o++)
		sum += d[Y * outs + o] * w[o * ins + X];
	din[Y * ins + X] = in[Y * ins + X] > 0 ? sum : 0;
}

// full_step changes a full layer: X is an input and Y an output.
KERNEL full_step(const GLOBAL float *d, const GLOBAL float *in, GLOBAL float *w, GLOBAL float *bias, int ins, int outs, int samples, float rate)
{
	if (X >= ins || Y >= outs)
		return;
	float sum = 0, all = 0;
	for (int s = 0; s < samples; s++) {
		sum += d[s * outs + Y] * in[s * ins + X];
		all += d[s * outs + Y];
	}
	w[Y * ins + X] -= rate * sum;
	if (X == 0)
		bias[Y] -= rate * all;
}

// pool_back gives each of a square's change to its first greatest, where that was not cut off at 0.
KERNEL pool_back(const GLOBAL float *d, const GLOBAL float *in, GLOBAL float *din, int channels, int side, int samples)
{
	int o = side / 2, k = X / (o * o), r = X / o % o, c = X % o;
	if (k >= channels || Y >= samples)
		return;
	int base = ((Y * channels + k) * side + 2 * r) * side + 2 * c, at[4] = {base, base + 1, base + side, base + side + 1}, best = 0;
	for (int i = 1; i < 4; i++)
		if (in[at[i]] > in[at[best]])
			best = i;
	for (int i = 0; i < 4; i++)
		din[at[i]] = i == best && in[at[i]] > 0 ? d[(Y * channels + k) * o * o + r * o + c] : 0;
}

KERNEL conv_back(const GLOBAL float *d, const GLOBAL float *w, GLOBAL float *din, int channels, int side, int pad, int filters, int samples)
{
	int o = side + 2 * pad - 4, k = X / (side * side), y = X / side % side, x = X % side;
	if (k >= channels || Y >= samples)
		return;
	float sum = 0;
	for (int f = 0; f < filters; f++)
		for (int i = 0; i < 5; i++)
			for (int j = 0; j < 5; j++) {
				int r = y - i + pad, c = x - j + pad;
				if (r >= 0 && c >= 0 && r < o && c < o)
					sum += d[(Y * filters + f) * o * o + r * o + c] * w[((f * channels + k) * 5 + i) * 5 + j];
			}
	din[(Y * channels + k) * side * side + y * side + x] = sum;
}

// conv_step changes a convolution: X is a weight of a filter, Y the filter.
KERNEL conv_step(const GLOBAL float *d, const GLOBAL float *in, GLOBAL float *w, GLOBAL float *bias, int channels, int side, int pad, int filters, int samples, float rate)
{
	int o = side + 2 * pad - 4, k = X / 25, i = X / 5 % 5, j = X % 5;
	if (k >= channels || Y >= filters)
		return;
	float sum = 0, all = 0;
	for (int s = 0; s < samples; s++)
		for (int r = 0; r < o; r++)
			for (int c = 0; c < o; c++) {
				float by = d[(s * filters + Y) * o * o + r * o + c];
				int y = r + i - pad, x = c + j - pad;
				all += by;
				if (y >= 0 && x >= 0 && y < side && x < side)
					sum += by * in[((s * channels + k) * side + y) * side + x];
			}
	w[((Y * channels + k) * 5 + i) * 5 + j] -= rate * sum;
	if (X == 0)
		bias[Y] -= rate * all;
}
