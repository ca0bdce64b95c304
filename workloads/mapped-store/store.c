/*
 * store make RECORDS FILE: writes RECORDS records. A record has 128 bytes: its key of 8 bytes, one field of 100 bytes, and zeros.
 * store serve ADDRESS PORT FILE: maps FILE, read-only and shared, and answers requests over TCP until it is killed. A request is a key. The
 * answer is its record, or 128 zeros if it does not exist. Records are in order of their keys, so the first fifth of the keys is the first fifth
 * of the pages.
 * store ready ADDRESS PORT: exit status 0 if the service answers a request for key 0 correctly.
 * store load ADDRESS PORT RECORDS OPERATIONS: makes OPERATIONS reads over one connection, each after the previous answer. 80 % of them read
 * the first 20 % of the keys (hot), and the others read the rest, uniformly within each part. The process ID and the time seed the generator. The
 * load checks every byte of each answer. It prints mean, p50 and p99 of the time of an operation in seconds, and operations_per_second.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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
#define FIELD 100
#define MOST 64	    /* connections */
#define PATIENCE 60 /* seconds that an answer may take */

struct record {
	uint64_t key; /* the key plus one, so no record is all zeros */
	char field[FIELD], rest[20];
};

_Static_assert(sizeof(struct record) == 128, "a record is 128 bytes");

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static struct record record(uint64_t key)
{
	struct record r = {.key = key + 1};

	for (uint64_t i = 0, x = key; i < FIELD; i++) {
		x = A * x + C;
		r.field[i] = 'a' + (x >> 33) % 26;
	}
	return r;
}

static void make(uint64_t records, const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out)
		fail(path, strerror(errno));
	for (uint64_t key = 0; key < records; key++) {
		struct record r = record(key);

		if (fwrite(&r, sizeof r, 1, out) != 1)
			fail(path, strerror(errno));
	}
	if (fclose(out))
		fail(path, strerror(errno));
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

static void at_once(int socket)
{
	int one = 1;

	if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		fail("TCP_NODELAY", strerror(errno));
}

/* 0 if everything was sent. */
static int give(int socket, const void *from, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = send(socket, (const char *)from + done, length - done, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0)
			done += n;
	}
	return 0;
}

static const struct record *find(const struct record *all, uint64_t records, uint64_t key)
{
	static const struct record none;

	return key < records ? &all[key] : &none;
}

static _Noreturn void serve(struct sockaddr_in at, const char *path)
{
	static unsigned char in[MOST + 1][sizeof(uint64_t)];
	static size_t have[MOST + 1];
	struct pollfd on[MOST + 1];
	int one = 1, count = 1, file = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);

	if (size < 0)
		fail(path, strerror(errno));
	if (!size || size % sizeof(struct record))
		fail(path, "must have records of 128 bytes");
	const struct record *all = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);

	if (all == MAP_FAILED)
		fail(path, strerror(errno));
	on[0] = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN};
	if (on[0].fd < 0 || setsockopt(on[0].fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
	    bind(on[0].fd, (void *)&at, sizeof at) || listen(on[0].fd, MOST))
		fail("listening", strerror(errno));
	for (;;) {
		if (poll(on, count, -1) < 0 && errno != EINTR)
			fail("poll", strerror(errno));
		for (int i = count - 1; i > 0; i--) {
			if (!on[i].revents)
				continue;
			ssize_t n = recv(on[i].fd, in[i] + have[i], sizeof in[i] - have[i], MSG_DONTWAIT);
			int over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);

			if (n > 0 && (have[i] += n) == sizeof in[i]) {
				uint64_t key;

				memcpy(&key, in[i], sizeof key);
				have[i] = 0;
				over = give(on[i].fd, find(all, size / sizeof *all, key), sizeof *all);
			}
			if (over) {
				close(on[i].fd);
				count--;
				on[i] = on[count];
				have[i] = have[count];
				memcpy(in[i], in[count], sizeof in[i]);
			}
		}
		if (on[0].revents) {
			int new = accept4(on[0].fd, NULL, NULL, SOCK_CLOEXEC);

			if (new < 0) /* the client is gone, or descriptors are exhausted; the next round shows which */
				continue;
			if (count > MOST) {
				close(new);
				continue;
			}
			at_once(new);
			on[count] = (struct pollfd){.fd = new, .events = POLLIN};
			have[count++] = 0;
		}
	}
}

/* Connects. All waits are limited. */
static int connected(struct sockaddr_in at)
{
	struct timeval limit = {.tv_sec = PATIENCE};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) ||
	    connect(fd, (void *)&at, sizeof at))
		fail("connecting", strerror(errno));
	at_once(fd);
	return fd;
}

static void ask(int socket, uint64_t key)
{
	struct record want = record(key), got;

	if (give(socket, &key, sizeof key))
		fail("sending a request", strerror(errno));
	for (size_t have = 0; have < sizeof got;) {
		ssize_t n = recv(socket, (char *)&got + have, sizeof got - have, 0);

		if (n == 0 || (n < 0 && errno != EINTR))
			fail("waiting for an answer", n ? strerror(errno) : "the service closed the connection");
		if (n > 0)
			have += n;
	}
	if (memcmp(&got, &want, sizeof got)) {
		fprintf(stderr, "wrong answer: key %llu has another record\n", (unsigned long long)key);
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		fail("clock", strerror(errno));
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void load(int socket, uint64_t records, uint64_t operations)
{
	uint64_t hot = records / 5, x = (uint64_t)getpid() << 32 ^ (uint64_t)(now() * 1e9);
	double *took = malloc(operations * sizeof *took), start, before, sum;

	if (!took)
		fail("memory", strerror(errno));
	start = before = now();
	for (uint64_t i = 0; i < operations; i++) {
		x = A * x + C;
		uint64_t of_hot = (x >> 33) % 10 < 8, at;

		x = A * x + C;
		at = of_hot ? (x >> 24) % hot : hot + (x >> 24) % (records - hot);
		ask(socket, at);
		double after = now();

		took[i] = after - before;
		before = after;
	}
	sum = before - start;
	qsort(took, operations, sizeof *took, rising);
	printf("{\"mean\": %.9f, \"p50\": %.9f, \"p99\": %.9f, \"operations_per_second\": %.3f}\n", sum / operations, took[operations / 2],
	       took[operations * 99 / 100], operations / sum);
	free(took);
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

	if (argc == 4 && !strcmp(what, "make"))
		make(number(argv[2]), argv[3]);
	else if (argc == 5 && !strcmp(what, "serve"))
		serve(place(argv[2], argv[3]), argv[4]);
	else if (argc == 4 && !strcmp(what, "ready"))
		ask(connected(place(argv[2], argv[3])), 0);
	else if (argc == 6 && !strcmp(what, "load") && number(argv[4]) >= 5)
		load(connected(place(argv[2], argv[3])), number(argv[4]), number(argv[5]));
	else {
		fprintf(stderr, "usage: store make RECORDS FILE | serve ADDRESS PORT FILE | ready ADDRESS PORT | load ADDRESS PORT RECORDS OPERATIONS; 5 records at least\n");
		return 2;
	}
	return 0;
}
