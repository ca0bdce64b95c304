// SHOC's level 0: each program measures the best that a device can do in one respect. The sizes are our own, because SHOC uses many.
#include <math.h>

#include "apps.h"
#include "device.h"

static int n;

// Words are copied from and to ordinary memory, which the driver must prepare for the device, as for the other applications.
enum { GROUP = 256, READS = 256, WORDS_MOST = 4096 }; // READS as in the kernels; WORDS_MOST in MiB, so that words can be counted
static unsigned *words, *sums;
static size_t bytes;

static void begin_words(int size)
{
	if (size > WORDS_MOST)
		fail("size: %d: must be at most %d MiB", size, WORDS_MOST);
	n = size << 18;
	bytes = sizeof *words * n;
	words = memory(bytes), sums = memory(bytes / READS);
	for (int i = 0; i < n; i++)
		words[i] = 7 + i * 2654435761u;
}

// check_sums adds the words of each of the device's items.
static void check_sums(void)
{
	for (int i = 0; i < n / READS; i++) {
		unsigned want = 0;
		for (int k = 0; k < READS; k++)
			want += words[i / GROUP * GROUP * READS + k * GROUP + i % GROUP];
		near("the words' sums", i, sums[i], want, 1, 0);
	}
}

// down copies to the device, where a kernel adds the words. One word changes each time, so the previous words would be wrong.
static void down(int times)
{
	buffer w = device_buffer(bytes), s = device_buffer(bytes / READS);
	for (int t = 0; t < times; t++) {
		words[t % n] = t;
		device_write(w, words, bytes);
	}
	LAUNCH("read_words", n / READS, 1, GROUP, 1, BUFFER(w), BUFFER(s));
	device_read(sums, s, bytes / READS);
}

// Divides the bytes by the device's own time of all copies: of the words, and of their sums at the end.
static double down_rate(int times) { return ((double)times * bytes + bytes / READS) / spent.copying / 1e9; }

// up copies from the device what a kernel has written, which changes each time.
static void up(int times)
{
	buffer w = device_buffer(bytes);
	for (int t = 0; t < times; t++) {
		LAUNCH("write_words", n / READS, 1, GROUP, 1, BUFFER(w), INT(n), INT(times - t));
		device_read(words, w, bytes);
	}
}

static void check_up(void)
{
	for (int i = 0; i < n; i++)
		near("the words", i, words[i], 1 + i * 2654435761u, 1, 0);
}

static double up_rate(int times) { return (double)times * bytes / spent.copying / 1e9; }

static void read_memory(int times)
{
	buffer w = device_buffer(bytes), s = device_buffer(bytes / READS);
	device_write(w, words, bytes);
	for (int t = 0; t < times; t++)
		LAUNCH("read_words", n / READS, 1, GROUP, 1, BUFFER(w), BUFFER(s));
	device_read(sums, s, bytes / READS);
}

// By the device's own time of kernels.
static double memory_rate(int times) { return (double)times * (bytes + bytes / READS) / spent.kernels / 1e9; }

// Chains of multiplications and additions. Each follows a geometric series, which has a formula.
enum { CHAINS = 16, STEPS = 1024, STARTS = 64 }; // CHAINS and STARTS as in the kernel
static const float by = 0.999f, plus = 0.0005f;
static float *chains;

static void begin_flops(int size)
{
	n = size * 1024;
	chains = memory(sizeof *chains * n);
}

static void flops(int times)
{
	buffer c = device_buffer(sizeof *chains * n);
	for (int t = 0; t < times; t++)
		LAUNCH("multiply_add", n, 1, GROUP, 1, BUFFER(c), INT(STEPS), FLOAT(by), FLOAT(plus));
	device_read(chains, c, sizeof *chains * n);
}

static void check_flops(void)
{
	double m = by, left = pow(m, STEPS), want[STARTS] = {0};
	for (int s = 0; s < STARTS; s++)
		for (int k = 0; k < CHAINS; k++)
			want[s] += left * ((double)s / STARTS + (double)k / CHAINS) + plus * (1 - left) / (1 - m);
	for (int i = 0; i < n; i++)
		near("the chains", i, chains[i], want[i % STARTS], CHAINS, 1e-5);
}

// By the device's own time of kernels. A multiplication and an addition count as two operations, even if the device fuses them.
static double flops_rate(int times) { return 2.0 * times * n * CHAINS * STEPS / spent.kernels / 1e9; }

// Launches a kernel that does almost nothing, and waits for each.
static unsigned launched;
static double launches, took;

static void begin_launches(int size) { n = size; }

static void launch(int times)
{
	buffer l = device_buffer(sizeof launched);
	device_write(l, &launched, sizeof launched);
	LAUNCH("count", 1, 1, 1, 1, BUFFER(l)); // the first takes longer and counts as first_launch
	double before = spent.launches + spent.waiting;
	launches = (double)times * n;
	for (double i = 0; i < launches; i++) {
		LAUNCH("count", 1, 1, 1, 1, BUFFER(l));
		device_finish();
	}
	took = spent.launches + spent.waiting - before;
	device_read(&launched, l, sizeof launched);
}

static void check_launches(void) { near("the launches", 0, launched, launches + 1, 1, 0); }

// The mean time of the calls by the program's clock: launching and waiting.
static double latency(int times)
{
	(void)times;
	return took / launches;
}

const struct app bus_down = {"bus-down", "levels", 16, 256, begin_words, down, check_sums, "bandwidth", down_rate};
const struct app bus_up = {"bus-up", "levels", 16, 256, begin_words, up, check_up, "bandwidth", up_rate};
const struct app device_memory = {"device-memory", "levels", 16, 256, begin_words, read_memory, check_sums, "bandwidth", memory_rate};
const struct app peak_flops = {"peak-flops", "levels", 16, 1024, begin_flops, flops, check_flops, "arithmetic", flops_rate};
const struct app launch_latency = {"launch-latency", "levels", 100, 1000, begin_launches, launch, check_launches, "launch_latency", latency};
