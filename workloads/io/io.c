/*
 * io make FILE: writes the file of blocks that requests read.
 * io run REQUESTS MILLIONS WORKERS FILE ANSWERS: computes MILLIONS million steps of x = a*x + c (mod 2^64), each depending on the
 * previous one. WORKERS processes share the steps, in REQUESTS requests. For each request a worker reads a block's
 * number from a TCP socket, reads that block of FILE from the disk, adds it to x, computes its steps, and writes x to the
 * socket. Its peer, a separate process on the loopback, waits for that and sends the next request. With 0 requests there
 * are neither peers nor a file. The last x of each worker goes to ANSWERS.
 * io check REQUESTS MILLIONS WORKERS ANSWERS: checks the answers by repeated squaring, without the steps and the file.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define BLOCK 4096
#define BLOCKS 4096 /* 16 MiB */
#define WORDS (BLOCK / sizeof(uint64_t))

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static uint64_t steps(uint64_t x, uint64_t n)
{
	while (n--)
		x = A * x + C;
	return x;
}

/* x after n steps, by squaring the map x -> a*x + c. */
static uint64_t jump(uint64_t x, uint64_t n)
{
	uint64_t a = A, c = C;

	for (; n; n >>= 1) {
		if (n & 1)
			x = a * x + c;
		c = (a + 1) * c;
		a *= a;
	}
	return x;
}

/* The size of the i-th of n pieces of total. The sizes sum to total and differ by at most one. */
static uint64_t piece(uint64_t total, uint64_t n, uint64_t i)
{
	return total / n + (i < total % n);
}

/* Word w of block b of the file, and the block of a worker's k-th request. The blocks are scattered and always the same. */
static uint64_t word(uint64_t b, uint64_t w)
{
	return (b * WORDS + w + 1) * A;
}

static uint64_t wanted(uint64_t worker, uint64_t k)
{
	return (jump(worker * 1000003 + k, 3) >> 32) % BLOCKS;
}

struct job {
	uint64_t requests, steps; /* for this worker */
	uint64_t number;
};

static struct job job(uint64_t requests, uint64_t total, uint64_t workers, uint64_t i)
{
	return (struct job){piece(requests, workers, i), piece(total, workers, i), i};
}

static void transfer(int socket, uint64_t *value, int out)
{
	size_t done = 0;

	while (done < sizeof *value) {
		char *at = (char *)value + done;
		ssize_t n = out ? send(socket, at, sizeof *value - done, MSG_NOSIGNAL) : recv(socket, at, sizeof *value - done, 0);

		if (n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE)))
			exit(1); /* the other end has printed why it ended, or was killed, which run reports */
		if (n < 0 && errno != EINTR)
			fail("socket", strerror(errno));
		if (n > 0)
			done += n;
	}
}

static uint64_t serve(struct job j, int socket, const char *path)
{
	uint64_t x = 42 + j.number, *block = NULL;
	/* O_DIRECT bypasses the page cache, so its content from earlier trials does not matter. The layers below belong to the platform. */
	int fd = open(path, O_RDONLY | O_DIRECT);

	if (fd < 0)
		fail(path, errno == EINVAL ? "its file system cannot bypass the page cache (O_DIRECT): it must be on a disk" : strerror(errno));
	if (posix_memalign((void **)&block, BLOCK, BLOCK))
		fail("memory", "not available");
	for (uint64_t k = 0; k < j.requests; k++) {
		uint64_t b;

		transfer(socket, &b, 0);
		if (pread(fd, block, BLOCK, b * BLOCK) != BLOCK)
			fail(path, "the file ends within a block");
		for (size_t w = 0; w < WORDS; w++)
			x += block[w];
		x = steps(x, piece(j.steps, j.requests, k));
		transfer(socket, &x, 1);
	}
	return x;
}

static uint64_t ask(struct job j, int socket)
{
	uint64_t x = 0;

	for (uint64_t k = 0; k < j.requests; k++) {
		uint64_t b = wanted(j.number, k);

		transfer(socket, &b, 1);
		transfer(socket, &x, 0);
	}
	return x;
}

/* Two ends of a TCP connection over the loopback. */
static void connection(int end[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, mine, theirs;
	socklen_t size = sizeof at, n = sizeof mine, m = sizeof theirs;
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	end[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || end[0] < 0 || bind(listener, (void *)&at, size) || listen(listener, 1) ||
	    getsockname(listener, (void *)&at, &size) || connect(end[0], (void *)&at, size) ||
	    (end[1] = accept(listener, (void *)&theirs, &m)) < 0 || getsockname(end[0], (void *)&mine, &n))
		fail("a TCP connection over the loopback", strerror(errno));
	if (mine.sin_port != theirs.sin_port)
		fail("a TCP connection over the loopback", "another process connected");
	for (int i = 0; i < 2; i++)
		if (setsockopt(end[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
			fail("TCP_NODELAY", strerror(errno));
	close(listener);
}

static void run(uint64_t requests, uint64_t total, uint64_t workers, const char *path, const char *answers)
{
	uint64_t *got = mmap(NULL, workers * sizeof *got, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t children = 0;

	if (got == MAP_FAILED)
		fail("memory", strerror(errno));
	for (uint64_t i = 0; i < workers; i++) {
		struct job j = job(requests, total, workers, i);
		int end[2] = {-1, -1};

		if (requests)
			connection(end);
		for (int peer = 0; peer <= !!requests; peer++, children++) {
			pid_t pid = fork();

			if (pid < 0)
				fail("fork", strerror(errno));
			if (pid)
				continue;
			if (requests) /* otherwise it would not see the other end's death */
				close(end[!peer]);
			if (!requests)
				got[i] = steps(42 + i, j.steps);
			else if (peer)
				got[i] = ask(j, end[peer]);
			else
				serve(j, end[peer], path);
			exit(0);
		}
		if (requests) {
			close(end[0]);
			close(end[1]);
		}
	}
	int failed = 0, status;

	while (children--) {
		failed |= wait(&status) < 0 || status;
		if (WIFSIGNALED(status))
			fprintf(stderr, "a worker or its peer was killed: %s\n", strsignal(WTERMSIG(status)));
	}
	if (failed)
		exit(1); /* the failed child has printed why */
	FILE *out = fopen(answers, "w");

	if (!out)
		fail(answers, strerror(errno));
	for (uint64_t i = 0; i < workers; i++)
		fprintf(out, "%llu\n", (unsigned long long)got[i]);
	if (ferror(out) || fclose(out))
		fail(answers, "cannot be written");
}

static void check(uint64_t requests, uint64_t total, uint64_t workers, const char *answers)
{
	static uint64_t sum[BLOCKS];
	FILE *in = fopen(answers, "r");
	unsigned long long got;

	if (!in)
		fail("answers", "are missing");
	for (uint64_t b = 0; b < BLOCKS; b++)
		for (uint64_t w = 0; w < WORDS; w++)
			sum[b] += word(b, w);
	for (uint64_t i = 0; i < workers; i++) {
		struct job j = job(requests, total, workers, i);
		uint64_t x = 42 + i;

		for (uint64_t k = 0; k < j.requests; k++)
			x = jump(x + sum[wanted(i, k)], piece(j.steps, j.requests, k));
		if (!requests)
			x = jump(x, j.steps);
		if (fscanf(in, "%llu", &got) != 1)
			fail("answers", "some are missing");
		if (got != x) {
			fprintf(stderr, "wrong answer of worker %llu: %llu: must be %llu\n", (unsigned long long)i, got, (unsigned long long)x);
			exit(1);
		}
	}
}

static void make(const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out)
		fail(path, strerror(errno));
	for (uint64_t b = 0; b < BLOCKS; b++)
		for (uint64_t w = 0; w < WORDS; w++) {
			uint64_t x = word(b, w);

			fwrite(&x, sizeof x, 1, out);
		}
	if (ferror(out) || fclose(out))
		fail(path, "cannot be written");
}

static uint64_t number(const char *s)
{
	char *end;
	uint64_t n = strtoull(s, &end, 10);

	if (!*s || *end) {
		fprintf(stderr, "%s: must be a number\n", s);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "make") && argc == 3) {
		make(argv[2]);
		return 0;
	}
	if ((strcmp(what, "run") || argc != 7) && (strcmp(what, "check") || argc != 6)) {
		fprintf(stderr, "usage: io make FILE | run REQUESTS MILLIONS WORKERS FILE ANSWERS | check REQUESTS MILLIONS WORKERS ANSWERS\n");
		return 2;
	}
	uint64_t requests = number(argv[2]), total = number(argv[3]) * 1000000, workers = number(argv[4]);

	if (!workers || (requests && requests < workers)) {
		fprintf(stderr, "%s requests for %s workers: must be none, or at least one for each\n", argv[2], argv[4]);
		return 2;
	}
	if (argc == 7)
		run(requests, total, workers, argv[5], argv[6]);
	else
		check(requests, total, workers, argv[5]);
	return 0;
}
