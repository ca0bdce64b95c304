// The kernels of LeNet, in the language of language.h.

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
