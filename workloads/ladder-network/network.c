/*
 * network serve ADDRESS PORT: answers requests over TCP until it is killed. A request consists of 8-byte words, and the first is its length
 * in bytes. The answer has the same length and the same first word. Every other word w becomes a*w + c (mod 2^64). The service closes a
 * connection that sends an impossible length.
 * network ready ADDRESS PORT: exit status 0 if the service answers one request correctly.
 * network load ADDRESS PORT TRIPS CONNECTIONS BYTES: sends TRIPS requests of BYTES bytes over CONNECTIONS connections. Each connection sends the
 * next request after the answer to the previous one. The load checks the length and every word of every answer. It prints the seconds from the
 * first request to the last answer. Before that, it makes the connections and sends one request on each.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define LEAST 16    /* bytes in a request */
#define LARGEST 65536
#define MOST 64	    /* connections */
#define PATIENCE 60 /* seconds that an answer may take */

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
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

/* The part of a message that a connection has received. */
struct message {
	uint64_t words[LARGEST / sizeof(uint64_t)];
	size_t have; /* bytes received */
};

enum state { PART, WHOLE, CLOSED, WRONG };

/* Receives the available bytes. errno says why the connection is CLOSED; 0 if the other end closed it normally. */
static enum state take(int socket, struct message *m)
{
	size_t want = m->have < sizeof m->words[0] ? sizeof m->words : m->words[0];
	ssize_t n = recv(socket, (char *)m->words + m->have, want - m->have, MSG_DONTWAIT);

	if (n <= 0) {
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return PART;
		if (n == 0)
			errno = 0;
		return CLOSED;
	}
	m->have += n;
	if (m->have < sizeof m->words[0])
		return PART;
	uint64_t length = m->words[0];

	if (length < LEAST || length > LARGEST || length % sizeof(uint64_t) || m->have > length)
		return WRONG;
	return m->have == length ? WHOLE : PART;
}

/* 0 if everything was sent. */
static int give(int socket, const struct message *m)
{
	for (size_t done = 0; done < m->words[0];) {
		ssize_t n = send(socket, (const char *)m->words + done, m->words[0] - done, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0)
			done += n;
	}
	return 0;
}

static void serve(struct sockaddr_in at)
{
	static struct message in[MOST + 1];
	struct pollfd on[MOST + 1];
	int one = 1, count = 1;

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
			enum state s = take(on[i].fd, &in[i]);

			if (s == WHOLE) {
				for (size_t w = 1; w < in[i].words[0] / sizeof(uint64_t); w++)
					in[i].words[w] = A * in[i].words[w] + C;
				if (give(on[i].fd, &in[i]))
					s = CLOSED;
				in[i].have = 0;
			}
			if (s == CLOSED || s == WRONG) {
				close(on[i].fd);
				count--;
				on[i] = on[count];
				if (i != count)
					in[i] = in[count];
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
			in[count++].have = 0;
		}
	}
}

/* Connects. All waits are limited. */
static int connected(struct sockaddr_in at)
{
	struct timeval limit = {.tv_sec = PATIENCE};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) || connect(fd, (void *)&at, sizeof at))
		fail("connecting", strerror(errno));
	at_once(fd);
	return fd;
}

/* Word w of the n-th request. */
static uint64_t word(uint64_t n, uint64_t w)
{
	return (n << 16 | w) * A + C;
}

/* A request in progress, and the received part of its answer. */
struct trip {
	uint64_t number;
	struct message message;
};

static void ask(int socket, struct trip *t, uint64_t number, uint64_t bytes)
{
	t->number = number;
	t->message.words[0] = bytes;
	for (size_t w = 1; w < bytes / sizeof(uint64_t); w++)
		t->message.words[w] = word(number, w);
	if (give(socket, &t->message))
		fail("sending a request", strerror(errno));
	t->message.have = 0;
	t->message.words[0] = 0;
}

/* Checks that the answer is complete and belongs to the request. */
static void compare(const struct trip *t, uint64_t bytes)
{
	if (t->message.words[0] != bytes) {
		fprintf(stderr, "wrong answer: %llu bytes: must be %llu\n", (unsigned long long)t->message.words[0], (unsigned long long)bytes);
		exit(1);
	}
	for (size_t w = 1; w < bytes / sizeof(uint64_t); w++)
		if (t->message.words[w] != A * word(t->number, w) + C) {
			fprintf(stderr, "wrong answer to request %llu in word %zu\n", (unsigned long long)t->number, w);
			exit(1);
		}
}

/* Sends requests first to first + count - 1. Each connection sends the next after the previous answer. */
static void trips(struct pollfd *on, int connections, uint64_t first, uint64_t count, uint64_t bytes)
{
	static struct trip under_way[MOST];
	uint64_t asked = 0, answered = 0;

	for (int i = 0; i < connections && asked < count; i++)
		ask(on[i].fd, &under_way[i], first + asked++, bytes);
	while (answered < count) {
		int n = poll(on, connections, PATIENCE * 1000);

		if (n == 0)
			fail("waiting for an answer", "none arrived within a minute");
		if (n < 0 && errno != EINTR)
			fail("poll", strerror(errno));
		for (int i = 0; n > 0 && i < connections; i++) {
			if (!on[i].revents)
				continue;
			switch (take(on[i].fd, &under_way[i].message)) {
			case PART:
				break;
			case CLOSED:
				fail("the service closed a connection", errno ? strerror(errno) : "it must send an answer");
			case WRONG:
				fail("wrong answer", "its length is impossible");
			case WHOLE:
				compare(&under_way[i], bytes);
				answered++;
				if (asked < count)
					ask(on[i].fd, &under_way[i], first + asked++, bytes);
			}
		}
	}
}

static double now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		fail("clock", strerror(errno));
	return t.tv_sec + t.tv_nsec / 1e9;
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
	const char *what = argc > 3 ? argv[1] : "";
	int load = argc == 7 && !strcmp(what, "load"), ready = argc == 4 && !strcmp(what, "ready");
	struct pollfd on[MOST];

	if (argc == 4 && !strcmp(what, "serve"))
		serve(place(argv[2], argv[3]));
	if (!load && !ready) {
		fprintf(stderr, "usage: network serve ADDRESS PORT | ready ADDRESS PORT | load ADDRESS PORT TRIPS CONNECTIONS BYTES\n");
		return 2;
	}
	struct sockaddr_in at = place(argv[2], argv[3]);
	uint64_t count = load ? number(argv[4]) : 0, connections = load ? number(argv[5]) : 1, bytes = load ? number(argv[6]) : LEAST;

	if (connections > MOST || bytes < LEAST || bytes > LARGEST || bytes % sizeof(uint64_t)) {
		fprintf(stderr, "must be at most %d connections, and %d to %d bytes in words of 8\n", MOST, LEAST, LARGEST);
		return 2;
	}
	for (uint64_t i = 0; i < connections; i++)
		on[i] = (struct pollfd){.fd = connected(at), .events = POLLIN};
	trips(on, connections, 0, connections, bytes);
	if (load) {
		double start = now();

		trips(on, connections, connections, count, bytes);
		printf("{\"seconds\": %.9f}\n", now() - start);
	}
	return 0;
}
