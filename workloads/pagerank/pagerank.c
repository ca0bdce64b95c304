/*
 * pagerank make MEGABYTES ITERATIONS EDGES VERTICES ANSWER: makes a graph (R-MAT) with MEGABYTES MiB of edges. An edge has 8 bytes: from and to, 4 bytes
 * each. The number of vertices is the largest power of two with at least 16 edges for each. VERTICES holds their out-degrees, 4 bytes each.
 * ANSWER holds the sum of the squares of all ranks after ITERATIONS iterations.
 * pagerank serve ADDRESS PORT EDGES VERTICES RANKS: maps VERTICES, read-only and shared. It makes RANKS and maps it, writable and shared, for the ranks
 * before and after an iteration. It answers requests over TCP, one connection at a time, until it is killed. A request is a number of
 * iterations, 8 bytes. The answer is the sum of the resulting ranks and the sum of their squares, as doubles. The answer to 0 is zeros. The first
 * other request reads EDGES into a buffer, which was allocated at the start.
 * pagerank ready ADDRESS PORT: exit status 0 if the service answers a request of no iterations.
 * pagerank load ADDRESS PORT ITERATIONS ANSWER: makes one request. The sum must be 1, and the sum of the squares must be ANSWER's. It prints the
 * seconds that the request took.
 *
 * A rank is 0.15/n + 0.85*(the sum of rank/degree over edges to it + an equal share of the ranks of vertices without edges). It starts at 1/n.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define PATIENCE 3600	/* seconds that an answer may take; a trial has its own limit */
#define REQUEST 10	/* seconds that a request may take to arrive */
#define MOST 100000	/* iterations */
#define DAMPING 0.85

struct edge {
	uint32_t from, to;
};

struct result {
	double sum, squares;
};

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

/* ranks: the ranks before an iteration, followed by those after it. The two change places with each iteration. */
static struct result rank(const struct edge *edges, uint64_t count, const uint32_t *degree, uint64_t n, double *ranks, uint64_t iterations)
{
	double *before = ranks, *after = ranks + n, *other;
	struct result r = {0, 0};

	for (uint64_t v = 0; v < n; v++)
		before[v] = 1.0 / n;
	while (iterations--) {
		double loose = 0;

		for (uint64_t v = 0; v < n; v++) {
			after[v] = 0;
			if (!degree[v])
				loose += before[v];
		}
		for (uint64_t e = 0; e < count; e++)
			after[edges[e].to] += before[edges[e].from] / degree[edges[e].from];
		for (uint64_t v = 0; v < n; v++)
			after[v] = (1 - DAMPING) / n + DAMPING * (after[v] + loose / n);
		other = before, before = after, after = other;
	}
	for (uint64_t v = 0; v < n; v++) {
		r.sum += before[v];
		r.squares += before[v] * before[v];
	}
	return r;
}

static void put(const char *path, const void *from, size_t size)
{
	FILE *out = fopen(path, "w");

	if (!out || fwrite(from, size, 1, out) != 1 || fclose(out))
		fail(path, strerror(errno));
}

static void make(uint64_t megabytes, uint64_t iterations, char **path)
{
	uint64_t count = (megabytes << 20) / sizeof(struct edge), n = 1, x = 42;

	while (2 * n * 16 <= count)
		n *= 2;
	struct edge *edges = calloc(count, sizeof *edges);
	uint32_t *degree = calloc(n, sizeof *degree);
	double *ranks = calloc(2 * n, sizeof *ranks);

	if (!edges || !degree || !ranks)
		fail("memory", strerror(errno));
	/* Draws each bit of both ends together: neither with probability 0.57, one of them with 0.19 each, both with 0.05, as R-MAT's authors do. */
	for (uint64_t e = 0; e < count; e++) {
		for (uint64_t bit = 1; bit < n; bit *= 2) {
			x = A * x + C;
			unsigned of_hundred = (x >> 33) % 100;

			if (of_hundred >= 57 && of_hundred < 76)
				edges[e].to |= bit;
			else if (of_hundred >= 76 && of_hundred < 95)
				edges[e].from |= bit;
			else if (of_hundred >= 95)
				edges[e].to |= bit, edges[e].from |= bit;
		}
		degree[edges[e].from]++;
	}
	put(path[0], edges, count * sizeof *edges);
	put(path[1], degree, n * sizeof *degree);
	FILE *out = fopen(path[2], "w");

	if (!out || fprintf(out, "%.17g\n", rank(edges, count, degree, n, ranks, iterations).squares) < 0 || fclose(out))
		fail(path[2], strerror(errno));
}

/* Opens a file, and returns its size and descriptor. */
static size_t sized(const char *path, int *fd)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = *fd < 0 ? -1 : lseek(*fd, 0, SEEK_END);

	if (size < 0 || lseek(*fd, 0, SEEK_SET))
		fail(path, strerror(errno));
	if (!size)
		fail(path, "it is empty");
	return size;
}

static struct sockaddr_in place(const char *address, const char *port)
{
	char *end;
	unsigned long number = strtoul(port, &end, 10);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(number)};

	if (*end || !number || number > 65535 || inet_pton(AF_INET, address, &at.sin_addr) != 1) {
		fprintf(stderr, "%s %s: must be an IPv4 address and a port\n", address, port);
		exit(2);
	}
	return at;
}

static void patience(int socket, int seconds)
{
	struct timeval limit = {.tv_sec = seconds};

	if (setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) || setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit))
		fail("a connection's limit", strerror(errno));
}

static _Noreturn void serve(struct sockaddr_in at, char **path)
{
	int of_edges, of_vertices, one = 1, listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t size = sized(path[0], &of_edges), vertices = sized(path[1], &of_vertices), have = 0;
	uint64_t n = vertices / sizeof(uint32_t), iterations;
	const uint32_t *degree = mmap(NULL, vertices, PROT_READ, MAP_SHARED, of_vertices, 0);
	int of_ranks = open(path[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	double *ranks = of_ranks < 0 || ftruncate(of_ranks, 2 * n * sizeof *ranks)
				? MAP_FAILED
				: mmap(NULL, 2 * n * sizeof *ranks, PROT_READ | PROT_WRITE, MAP_SHARED, of_ranks, 0);
	struct edge *edges = malloc(size);

	if (degree == MAP_FAILED || ranks == MAP_FAILED || !edges)
		fail("memory and mappings", strerror(errno));
	for (size_t page = 0; page < size; page += 4096) /* the pages exist from the start */
		((volatile char *)edges)[page] = 0;
	if (listening < 0 || setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) || bind(listening, (void *)&at, sizeof at) ||
	    listen(listening, 8))
		fail("listening", strerror(errno));
	for (;;) {
		int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0) /* the client is gone */
			continue;
		patience(fd, REQUEST);
		while (recv(fd, &iterations, sizeof iterations, MSG_WAITALL) == sizeof iterations && iterations <= MOST) {
			struct result r = {0, 0};

			while (iterations && have < size) {
				ssize_t got = read(of_edges, (char *)edges + have, size - have);

				if (got <= 0)
					fail(path[0], got ? strerror(errno) : "it has become shorter");
				have += got;
			}
			if (iterations)
				r = rank(edges, size / sizeof *edges, degree, n, ranks, iterations);
			if (send(fd, &r, sizeof r, MSG_NOSIGNAL) != sizeof r)
				break;
		}
		close(fd);
	}
}

static struct result ask(struct sockaddr_in at, uint64_t iterations)
{
	struct result r;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("a socket", strerror(errno));
	patience(fd, PATIENCE);
	if (connect(fd, (void *)&at, sizeof at))
		fail("connecting", strerror(errno));
	if (send(fd, &iterations, sizeof iterations, MSG_NOSIGNAL) != sizeof iterations)
		fail("sending a request", strerror(errno));
	ssize_t got = recv(fd, &r, sizeof r, MSG_WAITALL);

	if (got != sizeof r)
		fail("waiting for an answer", got < 0 ? strerror(errno) : "the service closed the connection");
	return r;
}

static double now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		fail("clock", strerror(errno));
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Compares within the rounding error, which grows with the number of vertices. */
static int same(double a, double b)
{
	return a - b <= 1e-9 * b && b - a <= 1e-9 * b;
}

static void load(struct sockaddr_in at, uint64_t iterations, const char *path)
{
	FILE *file = fopen(path, "r");
	double want, start = now(), took;

	if (!file || fscanf(file, "%lf", &want) != 1)
		fail(path, "must be a number");
	struct result r = ask(at, iterations);

	took = now() - start;
	if (!same(r.sum, 1) || !same(r.squares, want)) {
		fprintf(stderr, "wrong answer: the ranks have the sum %.12g and their squares %.12g: must be 1 and %.12g\n", r.sum, r.squares, want);
		exit(1);
	}
	printf("{\"seconds\": %.9f}\n", took);
}

static uint64_t number(const char *s)
{
	char *end;
	uint64_t n = strtoull(s, &end, 10);

	if (!n || *end) {
		fprintf(stderr, "%s: must be a number\n", s);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 7 && !strcmp(what, "make"))
		make(number(argv[2]), number(argv[3]), argv + 4);
	else if (argc == 7 && !strcmp(what, "serve"))
		serve(place(argv[2], argv[3]), argv + 4);
	else if (argc == 4 && !strcmp(what, "ready"))
		ask(place(argv[2], argv[3]), 0);
	else if (argc == 6 && !strcmp(what, "load"))
		load(place(argv[2], argv[3]), number(argv[4]), argv[5]);
	else {
		fprintf(stderr, "usage: pagerank make MEGABYTES ITERATIONS EDGES VERTICES ANSWER | serve ADDRESS PORT EDGES VERTICES RANKS | "
				"ready ADDRESS PORT | load ADDRESS PORT ITERATIONS ANSWER\n");
		return 2;
	}
	return 0;
}
