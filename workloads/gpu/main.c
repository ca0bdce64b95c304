// gpu APPLICATION DRIVER CORES SIZE TIMES FOLDER: runs a GPU application TIMES times, checks its results against the CPU's, and prints one JSON line.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps.h"
#include "device.h"

struct account spent = {.compiled = -1};

void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("gpu: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	fflush(NULL);
	_exit(1); // exit would remove a driver whose threads may still compile kernels, and some then crash
}

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	spent.clocks++;
	return t.tv_sec + t.tv_nsec / 1e9;
}

void *memory(size_t bytes)
{
	void *p = calloc(1, bytes);
	if (!p)
		fail("no memory for %zu bytes: choose a smaller size", bytes);
	return p;
}

float random_number(void)
{
	static unsigned long long s = 42;
	s = s * 6364136223846793005ull + 1442695040888963407ull;
	return (s >> 40) / (float)(1 << 24);
}

void near(const char *what, int at, double got, double want, double most, double share)
{
	if (!(fabs(got - want) <= share * fmax(most, 1e-30))) // NaN is near to nothing
		fail("the device computed %s[%d] as %g, the CPU %g: the device, its driver or its compiler is wrong", what, at, got, want);
}

static double *repeats, last; // the time of each run, and when the latest ended
static int repetitions;

void repeated(void)
{
	double at = now();
	repeats[repetitions++] = at - last;
	last = at;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct kernel kernels[KERNELS + 1];

struct kernel *kernel_named(const char *name)
{
	struct kernel *k = kernels;
	while (k->name && strcmp(k->name, name))
		k++;
	if (k == kernels + KERNELS)
		fail("more than %d kernels", KERNELS);
	k->name = name;
	return k;
}

static int number(const char *text, const char *what, long least, long most)
{
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno || *end || end == text || n < least || n > most)
		fail("%s: %s: must be a number from %ld to %ld", what, text, least, most);
	return n;
}

char *contents(const char *folder, const char *name)
{
	enum { MOST = 64 << 20 };
	char path[4096];
	struct stat about;
	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
		fail("%s/%s: the path is too long", folder, name);
	FILE *f = fopen(path, "r");
	if (!f || fstat(fileno(f), &about))
		fail("%s: %s", path, strerror(errno));
	if (about.st_size < 1 || about.st_size > MOST)
		fail("%s: %lld bytes: must be 1 to %d", path, (long long)about.st_size, MOST);
	char *all = memory(about.st_size + 1);
	if (fread(all, 1, about.st_size, f) != (size_t)about.st_size)
		fail("%s: cannot be read completely: %s", path, strerror(errno));
	fclose(f);
	return all;
}

int main(int argc, char **argv)
{
	const struct app *apps[] = {&lud, &stencil, &particles, &inference, &training, &bus_down, &bus_up, &device_memory, &peak_flops, &launch_latency,
	                            &fft, &gemm, &md, &reduction, &scan, &sort, &spmv, &triad}, *app = NULL;
	if (argc != 7)
		fail("usage: gpu APPLICATION DRIVER CORES SIZE TIMES FOLDER");
	for (size_t i = 0; i < sizeof apps / sizeof *apps; i++)
		if (strcmp(apps[i]->name, argv[1]) == 0)
			app = apps[i];
	if (!app)
		fail("unknown application %s", argv[1]);
	int cores = number(argv[3], "cores", 1, 1024), size, times = number(argv[5], "times", 1, 1000000);
	if (strcmp(argv[4], "small") == 0)
		size = app->small;
	else if (strcmp(argv[4], "usual") == 0)
		size = app->usual;
	else
		size = number(argv[4], "size: small, usual, or", 1, 65536);
	app->begin(size);
	repeats = memory(sizeof *repeats * times);

	device_watch();
	double start = now();
	device_open(argv[2], cores, argv[6], app->kernels);
	last = now();
	app->run(times);
	double time = now() - start;
	struct condition device = device_condition();
	app->check();
	device_close();

	// The time of reading the clock.
	double reads = spent.clocks, from = now();
	enum { TRIES = 1000 };
	for (int i = 0; i < TRIES; i++)
		now();
	double cost = (now() - from) / (TRIES + 1) * reads;

	double calls = spent.opening + spent.compilation + spent.allocation + spent.copies + spent.launches + spent.waiting;
	printf("{\"time\": %.9f, \"calls\": %.9f, \"opening\": %.9f, \"compilation\": %.9f, \"allocation\": %.9f, \"copies\": %.9f, \"launches\": %.9f, \"waiting\": %.9f, \"rest\": %.9f, "
	       "\"first_launch\": %.9f, \"measuring\": %.9f, \"device_memory\": %.0f",
	       time, calls, spent.opening, spent.compilation, spent.allocation, spent.copies, spent.launches, spent.waiting, fmax(0, time - calls),
	       spent.first, cost, spent.memory);
	if (spent.recorded)
		printf(", \"kernels\": %.9f, \"copying\": %.9f, \"kernel_share\": %.9f", spent.kernels, spent.copying, spent.kernels / (spent.kernels + fmax(0, calls - spent.kernels)));
	if (spent.compiled >= 0)
		printf(", \"compiled\": %.9f", spent.compiled);
	const struct {
		const char *name;
		double value;
	} condition[] = {{"clock", device.clock}, {"temperature", device.temperature}, {"power", device.power}, {"throttled", device.throttled}, {"others", device.others}};
	for (size_t i = 0; i < sizeof condition / sizeof *condition; i++)
		if (condition[i].value >= 0)
			printf(", \"%s\": %.9g", condition[i].name, condition[i].value);
	double value = app->figure ? app->value(times) : 0;
	if (isfinite(value) && value > 0)
		printf(", \"%s\": %.9g", app->figure, value);
	if (repetitions > 1) // the first includes allocation and loading the kernels
		repeats++, repetitions--;
	double sum = 0;
	for (int i = 0; i < repetitions; i++)
		sum += repeats[i];
	qsort(repeats, repetitions, sizeof *repeats, ascending);
	if (repetitions)
		printf(", \"rate\": %.9f, \"p99\": %.9f", repetitions / sum, repeats[(int)ceil(0.99 * repetitions) - 1]);
	puts("}");
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
