/*
 * fileserver DIR FILES KIB THREADS IOSIZE ROUNDS: makes FILES files of KIB KiB on average in DIR. Then each of THREADS threads does eleven operations,
 * ROUNDS times, with reads and writes of at most IOSIZE KiB. The last line is a JSON object: the time of all operations divided by their number,
 * in seconds, operations a second, and percentiles of their times. Exit status 1 if an operation fails, 2 for wrong arguments.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OPERATIONS 11
#define PER_FOLDER 20
#define APPEND (16 << 10)

static const char *dir;
static long files, kib, threads, iosize, rounds;

struct file {
	pthread_mutex_t lock; /* held during each operation on the file: one thread at a time, as in Filebench */
	int there;
	long size;
};
static struct file *set;
static pthread_barrier_t start;

struct thread {
	pthread_t id;
	uint64_t seed;
	char *block;
	float *took;
	long n;
	double began, ended;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(const char *what, long file)
{
	fprintf(stderr, "fileserver: %s file %ld: %s\n", what, file, strerror(errno));
	exit(1);
}

static uint64_t draw(uint64_t *seed) /* splitmix64 */
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static double uniform(uint64_t *seed) { return ((draw(seed) >> 11) + 1) / 9007199254740993.0; } /* above 0 */

static double minus_ln(double u) /* halves the argument, then uses 2 artanh((1-u)/(1+u)) */
{
	double sum = 0;

	for (; u < 0.5; u *= 2)
		sum += 0.69314718055994531;
	double t = (1 - u) / (1 + u), s = t, p = t;

	for (int k = 3; k < 25; k += 2) {
		p *= t * t;
		s += p / k;
	}
	return sum + 2 * s;
}

/* A size from the gamma distribution with shape 1.5: the sum of an exponential value and half the square of a normal one. */
static long size(uint64_t *seed, double mean)
{
	double z = -6;

	for (int i = 0; i < 12; i++)
		z += uniform(seed);
	long n = mean / 1.5 * (minus_ln(uniform(seed)) + z * z / 2);
	return n > 0 ? n : 1;
}

static void path(char *to, size_t room, long file)
{
	snprintf(to, room, "%s/%ld/%ld", dir, file / PER_FOLDER, file);
}

static void put(int fd, long file, const char *block, long bytes)
{
	while (bytes > 0) {
		long n = bytes < iosize << 10 ? bytes : iosize << 10, m = write(fd, block, n);

		if (m <= 0)
			fail("write", file);
		bytes -= m;
	}
}

static void get(int fd, long file, char *block, long bytes)
{
	long all = 0, n;

	while ((n = read(fd, block, iosize << 10)) > 0)
		all += n;
	if (n < 0)
		fail("read", file);
	if (all != bytes) {
		fprintf(stderr, "fileserver: file %ld has %ld bytes: must be %ld, as written\n", file, all, bytes);
		exit(1);
	}
}

/* An idle file that exists or does not, as requested. The caller then owns it. */
static long take(struct thread *t, int there)
{
	for (;;) {
		long i = draw(&t->seed) % (uint64_t)files;

		if (pthread_mutex_trylock(&set[i].lock))
			continue;
		if (set[i].there == there)
			return i;
		pthread_mutex_unlock(&set[i].lock);
	}
}

static void give(long i) { pthread_mutex_unlock(&set[i].lock); }

#define DO(what, i, operation)                                  \
	do {                                                    \
		double began = now();                           \
		if ((operation) < 0)                            \
			fail(what, i);                          \
		t->took[t->n++] = now() - began;                \
	} while (0)

static void once(struct thread *t)
{
	char name[4096];
	struct stat st;
	int fd;
	long i, n;

	i = take(t, 0);
	path(name, sizeof name, i);
	n = size(&t->seed, kib * 1024.0);
	DO("create", i, fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600));
	DO("write", i, (put(fd, i, t->block, n), 0));
	DO("close", i, close(fd));
	set[i].size = n;
	set[i].there = 1;
	give(i);

	i = take(t, 1);
	path(name, sizeof name, i);
	n = size(&t->seed, APPEND);
	DO("open", i, fd = open(name, O_WRONLY | O_APPEND));
	DO("append", i, (put(fd, i, t->block, n), 0));
	DO("close", i, close(fd));
	set[i].size += n;
	give(i);

	i = take(t, 1);
	path(name, sizeof name, i);
	DO("open", i, fd = open(name, O_RDONLY));
	DO("read", i, (get(fd, i, t->block, set[i].size), 0));
	DO("close", i, close(fd));
	give(i);

	i = take(t, 1);
	path(name, sizeof name, i);
	DO("delete", i, unlink(name));
	set[i].there = 0;
	give(i);

	i = take(t, 1);
	path(name, sizeof name, i);
	DO("stat", i, stat(name, &st));
	if (st.st_size != set[i].size)
		fail("size of", i);
	give(i);
}

static void *work(void *arg)
{
	struct thread *t = arg;

	pthread_barrier_wait(&start);
	t->began = now();
	for (long r = 0; r < rounds; r++)
		once(t);
	t->ended = now();
	return NULL;
}

static int order(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long *numbers[] = {&files, &kib, &threads, &iosize, &rounds};
	char name[4096], *end;

	if (argc != 7)
		goto usage;
	dir = argv[1];
	for (int i = 0; i < 5; i++) {
		*numbers[i] = strtol(argv[i + 2], &end, 10);
		if (*numbers[i] < 1 || *end)
			goto usage;
	}
	/* Four fifths of the files exist at the beginning, as Filebench preallocates. The others can be created. */
	set = calloc(files, sizeof *set);
	struct thread *all = calloc(threads, sizeof *all);
	/* A busy neighbour has as many rounds as it can get and is stopped long before: room for them is reserved nowhere, and a VM would refuse it. */
	float *took = mmap(NULL, sizeof *took * threads * rounds * OPERATIONS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t seed = 42;

	if (!set || !all || took == MAP_FAILED || files < 2 * threads + 2) {
		fprintf(stderr, "fileserver: too little memory, or fewer than two files for each thread\n");
		return 2;
	}
	mkdir(dir, 0700);
	for (int i = 0; i < threads; i++) {
		all[i].seed = 1000 + i;
		all[i].took = took + i * rounds * OPERATIONS;
		if (!(all[i].block = malloc(iosize << 10)))
			fail("memory for", i);
		memset(all[i].block, 'a' + i % 26, iosize << 10);
	}
	for (long i = 0; i < files; i++) {
		pthread_mutex_init(&set[i].lock, NULL);
		if (i % PER_FOLDER == 0) {
			snprintf(name, sizeof name, "%s/%ld", dir, i / PER_FOLDER);
			if (mkdir(name, 0700) && errno != EEXIST)
				fail("folder of", i);
		}
		path(name, sizeof name, i);
		unlink(name); /* a file of the previous trial */
		if (i % 5 == 4)
			continue;
		int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		if (fd < 0)
			fail("create", i);
		set[i].size = size(&seed, kib * 1024.0);
		set[i].there = 1;
		put(fd, i, all[0].block, set[i].size);
		close(fd);
	}
	pthread_barrier_init(&start, NULL, threads);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&all[i].id, NULL, work, &all[i]))
			fail("thread", i);
	double began = 0, ended = 0;

	for (int i = 0; i < threads; i++) {
		pthread_join(all[i].id, NULL);
		if (i == 0 || all[i].began < began)
			began = all[i].began;
		if (all[i].ended > ended)
			ended = all[i].ended;
	}
	long n = threads * rounds * OPERATIONS;

	qsort(took, n, sizeof *took, order);
	printf("{\"time_per_operation\":%.9g,\"operations\":%.9g,\"operations_done\":%ld,\"p50\":%.6g,\"p95\":%.6g,\"p99\":%.6g}\n", (ended - began) / n, n / (ended - began), n,
	       took[n / 2], took[n * 95 / 100], took[n * 99 / 100]);
	return 0;
usage:
	fprintf(stderr, "usage: fileserver DIR FILES KIB THREADS IOSIZE ROUNDS, each number at least 1\n");
	return 2;
}
