// LeNet-5 on a batch of images of 28 × 28 points: inference, and a step of its training by gradient descent. Its weights and images are random numbers,
// which take as long as real ones.
#include <math.h>
#include <string.h>

#include "apps.h"
#include "device.h"

// A layer: a convolution of 5 × 5 followed by max pooling of each four values, or a fully connected layer (side 0).
struct layer {
	int ins, side, pad, outs; // channels, or inputs; of the square that comes in; filters, or outputs
};
static const struct layer layers[] = {{1, 28, 2, 6}, {6, 14, 0, 16}, {400, 0, 0, 120}, {120, 0, 0, 84}, {84, 0, 0, 10}};
enum { LAYERS = 5, OUTS = 10 };
static const float rate = 0.1f;

static int samples;
static float *images, *weights[LAYERS], *biases[LAYERS], *after[LAYERS], *answers;
static int *labels;

static int out_side(const struct layer *l) { return l->side + 2 * l->pad - 4; }
static int inputs(const struct layer *l) { return l->side ? l->ins * l->side * l->side : l->ins; }
static int outputs(const struct layer *l) { return l->side ? l->outs * out_side(l) * out_side(l) : l->outs; } // for a convolution, before pooling
static int weight_count(const struct layer *l) { return l->outs * l->ins * (l->side ? 25 : 1); }

static void begin(int size)
{
	if (size > 65535)
		fail("size: %d: must be at most 65535 images", size);
	samples = size;
	images = memory(sizeof *images * samples * 784), labels = memory(sizeof *labels * samples), answers = memory(sizeof *answers * samples * OUTS);
	for (int i = 0; i < samples * 784; i++)
		images[i] = random_number();
	for (int i = 0; i < samples; i++)
		labels[i] = i % OUTS;
	for (int l = 0; l < LAYERS; l++) {
		int n = weight_count(&layers[l]), ins = n / layers[l].outs;
		weights[l] = memory(sizeof(float) * n), after[l] = memory(sizeof(float) * n), biases[l] = memory(sizeof(float) * layers[l].outs);
		for (int i = 0; i < n; i++)
			weights[l][i] = (2 * random_number() - 1) / sqrtf(ins);
	}
}

// On the device: the input of each layer, the output of a convolution before pooling, and the changes of both.
static buffer w[LAYERS], b[LAYERS], in[LAYERS + 1], raw[LAYERS], din[LAYERS + 1], draw[LAYERS], right;

static void load(int train)
{
	for (int l = 0; l < LAYERS; l++) {
		const struct layer *y = &layers[l];
		w[l] = device_buffer(sizeof(float) * weight_count(y)), b[l] = device_buffer(sizeof(float) * y->outs);
		in[l] = device_buffer(sizeof(float) * samples * inputs(y));
		if (y->side)
			raw[l] = device_buffer(sizeof(float) * samples * outputs(y));
		if (train)
			din[l] = device_buffer(sizeof(float) * samples * inputs(y));
		if (train && y->side)
			draw[l] = device_buffer(sizeof(float) * samples * outputs(y));
		device_write(w[l], weights[l], sizeof(float) * weight_count(y)), device_write(b[l], biases[l], sizeof(float) * y->outs);
	}
	in[LAYERS] = device_buffer(sizeof(float) * samples * OUTS);
	if (train) {
		din[LAYERS] = device_buffer(sizeof(float) * samples * OUTS);
		right = device_buffer(sizeof *labels * samples);
		device_write(right, labels, sizeof *labels * samples);
	}
}

static void forward(void)
{
	device_write(in[0], images, sizeof *images * samples * 784);
	for (int l = 0; l < LAYERS; l++) {
		const struct layer *y = &layers[l];
		if (y->side) {
			LAUNCH("conv", outputs(y), samples, 32, 1, BUFFER(in[l]), BUFFER(w[l]), BUFFER(b[l]), BUFFER(raw[l]), INT(y->ins), INT(y->side), INT(y->pad), INT(y->outs), INT(samples));
			LAUNCH("pool", outputs(y) / 4, samples, 32, 1, BUFFER(raw[l]), BUFFER(in[l + 1]), INT(y->outs), INT(out_side(y)), INT(samples));
		} else
			LAUNCH("full", y->outs, samples, 8, 1, BUFFER(in[l]), BUFFER(w[l]), BUFFER(b[l]), BUFFER(in[l + 1]), INT(y->ins), INT(y->outs), INT(l < LAYERS - 1), INT(samples));
	}
}

static void backward(void)
{
	LAUNCH("loss", 1, samples, 1, 1, BUFFER(in[LAYERS]), BUFFER(right), BUFFER(din[LAYERS]), INT(OUTS), INT(samples));
	for (int l = LAYERS - 1; l >= 0; l--) {
		const struct layer *y = &layers[l];
		if (!y->side) {
			LAUNCH("full_back", y->ins, samples, 8, 1, BUFFER(din[l + 1]), BUFFER(w[l]), BUFFER(in[l]), BUFFER(din[l]), INT(y->ins), INT(y->outs), INT(samples));
			LAUNCH("full_step", y->ins, y->outs, 8, 1, BUFFER(din[l + 1]), BUFFER(in[l]), BUFFER(w[l]), BUFFER(b[l]), INT(y->ins), INT(y->outs), INT(samples), FLOAT(rate));
			continue;
		}
		LAUNCH("pool_back", outputs(y) / 4, samples, 32, 1, BUFFER(din[l + 1]), BUFFER(raw[l]), BUFFER(draw[l]), INT(y->outs), INT(out_side(y)), INT(samples));
		if (l > 0)
			LAUNCH("conv_back", inputs(y), samples, 32, 1, BUFFER(draw[l]), BUFFER(w[l]), BUFFER(din[l]), INT(y->ins), INT(y->side), INT(y->pad), INT(y->outs), INT(samples));
		LAUNCH("conv_step", y->ins * 25, y->outs, 1, 1, BUFFER(draw[l]), BUFFER(in[l]), BUFFER(w[l]), BUFFER(b[l]), INT(y->ins), INT(y->side), INT(y->pad), INT(y->outs), INT(samples), FLOAT(rate));
	}
}

static void infer(int times)
{
	load(0);
	for (int t = 0; t < times; t++) {
		forward();
		device_read(answers, in[LAYERS], sizeof *answers * samples * OUTS);
		repeated();
	}
}

// train makes the training steps. It keeps the weights after the first step for the check, because rounding makes later ones diverge.
static void train(int times)
{
	load(1);
	for (int t = 0; t < times; t++) {
		forward();
		backward();
		device_finish();
		for (int l = 0; t == 0 && l < LAYERS; l++)
			device_read(after[l], w[l], sizeof(float) * weight_count(&layers[l]));
		repeated();
	}
}

// On the CPU, in double precision, sample by sample: the layers by their definitions.
struct pass {
	double *in[LAYERS + 1], *raw[LAYERS];
};

static void answer(struct pass *p, const float *image)
{
	for (int i = 0; i < 784; i++)
		p->in[0][i] = image[i];
	for (int l = 0; l < LAYERS; l++) {
		const struct layer *y = &layers[l];
		int o = out_side(y);
		if (!y->side) {
			for (int k = 0; k < y->outs; k++) {
				double sum = biases[l][k];
				for (int i = 0; i < y->ins; i++)
					sum += p->in[l][i] * weights[l][k * y->ins + i];
				p->in[l + 1][k] = l < LAYERS - 1 ? fmax(0, sum) : sum;
			}
			continue;
		}
		for (int f = 0; f < y->outs; f++)
			for (int r = 0; r < o; r++)
				for (int c = 0; c < o; c++) {
					double sum = biases[l][f];
					for (int k = 0; k < y->ins * 25; k++) {
						int v = r + k / 5 % 5 - y->pad, h = c + k % 5 - y->pad;
						if (v >= 0 && h >= 0 && v < y->side && h < y->side)
							sum += p->in[l][(k / 25 * y->side + v) * y->side + h] * weights[l][f * y->ins * 25 + k];
					}
					p->raw[l][(f * o + r) * o + c] = fmax(0, sum);
				}
		for (int f = 0; f < y->outs; f++)
			for (int r = 0; r < o / 2; r++)
				for (int c = 0; c < o / 2; c++) {
					const double *q = p->raw[l] + (f * o + 2 * r) * o + 2 * c;
					p->in[l + 1][(f * (o / 2) + r) * (o / 2) + c] = fmax(fmax(q[0], q[1]), fmax(q[o], q[o + 1]));
				}
	}
}

static struct pass passed(void)
{
	struct pass p;
	for (int l = 0; l < LAYERS; l++) {
		p.in[l] = memory(sizeof(double) * inputs(&layers[l]));
		p.raw[l] = memory(sizeof(double) * outputs(&layers[l]));
	}
	p.in[LAYERS] = memory(sizeof(double) * OUTS);
	return p;
}

static void check_answers(void)
{
	struct pass p = passed();
	for (int s = 0; s < samples; s++) {
		answer(&p, images + s * 784);
		double most = 0;
		for (int k = 0; k < OUTS; k++)
			most = fmax(most, fabs(p.in[LAYERS][k]));
		for (int k = 0; k < OUTS; k++)
			near("the answers", s * OUTS + k, answers[s * OUTS + k], p.in[LAYERS][k], most, 1e-4);
	}
}

// check_step computes the change of each weight from each sample's loss, layer by layer from the last.
static void check_step(void)
{
	struct pass p = passed(), d = passed();
	double *change[LAYERS];
	for (int l = 0; l < LAYERS; l++)
		change[l] = memory(sizeof(double) * weight_count(&layers[l]));
	for (int s = 0; s < samples; s++) {
		answer(&p, images + s * 784);
		double most = p.in[LAYERS][0], sum = 0;
		for (int k = 0; k < OUTS; k++)
			most = fmax(most, p.in[LAYERS][k]);
		for (int k = 0; k < OUTS; k++)
			sum += exp(p.in[LAYERS][k] - most);
		for (int k = 0; k < OUTS; k++)
			d.in[LAYERS][k] = (exp(p.in[LAYERS][k] - most) / sum - (labels[s] == k)) / samples;
		for (int l = LAYERS - 1; l >= 0; l--) {
			const struct layer *y = &layers[l];
			int o = out_side(y);
			memset(d.in[l], 0, sizeof(double) * inputs(y));
			if (!y->side) {
				for (int k = 0; k < y->outs; k++)
					for (int i = 0; i < y->ins; i++) {
						change[l][k * y->ins + i] += d.in[l + 1][k] * p.in[l][i];
						if (p.in[l][i] > 0)
							d.in[l][i] += d.in[l + 1][k] * weights[l][k * y->ins + i];
					}
				continue;
			}
			for (int f = 0; f < y->outs; f++)
				for (int r = 0; r < o / 2; r++)
					for (int c = 0; c < o / 2; c++) {
						int at = (f * o + 2 * r) * o + 2 * c, each[4] = {at, at + 1, at + o, at + o + 1}, best = at;
						for (int i = 0; i < 4; i++) {
							d.raw[l][each[i]] = 0;
							if (p.raw[l][each[i]] > p.raw[l][best])
								best = each[i];
						}
						if (p.raw[l][best] > 0)
							d.raw[l][best] = d.in[l + 1][(f * (o / 2) + r) * (o / 2) + c];
					}
			for (int f = 0; f < y->outs; f++)
				for (int r = 0; r < o; r++)
					for (int c = 0; c < o; c++) {
						double by = d.raw[l][(f * o + r) * o + c];
						for (int k = 0; by != 0 && k < y->ins * 25; k++) {
							int v = r + k / 5 % 5 - y->pad, h = c + k % 5 - y->pad;
							if (v < 0 || h < 0 || v >= y->side || h >= y->side)
								continue;
							int i = (k / 25 * y->side + v) * y->side + h;
							change[l][f * y->ins * 25 + k] += by * p.in[l][i];
							d.in[l][i] += by * weights[l][f * y->ins * 25 + k];
						}
					}
		}
	}
	for (int l = 0; l < LAYERS; l++) {
		double most = 0;
		for (int i = 0; i < weight_count(&layers[l]); i++)
			most = fmax(most, fabs(change[l][i]));
		for (int i = 0; i < weight_count(&layers[l]); i++)
			near("a layer's changes", i, (weights[l][i] - after[l][i]) / rate, change[l][i], most, 2e-2);
	}
}

const struct app inference = {"lenet-inference", "lenet", 64, 64, begin, infer, check_answers, NULL, NULL};
const struct app training = {"lenet-training", "lenet", 64, 64, begin, train, check_step, NULL, NULL};
