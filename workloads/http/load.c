// load ADDRESS PORT PATH FILE [RATE SECONDS]
//
// Sends RATE requests a second for SECONDS over HTTP/1.1. Each is sent when it is due, whether or not those before are answered (an
// open load), over connections that stay open. Without RATE it sends one request, and its exit status says whether that succeeded.
//
// FILE holds the method, a line feed, the header lines and the body. The program adds the path and, unless FILE has one, a Host header.
//
// It prints one JSON object. A response time begins when the request is written, or when its connection begins to open if none is free,
// and ends with the last byte of the body. late is the p99 of how long after their due times requests were sent, or 0 if that is within
// 1 ms.
//
// If TARE_REQUESTS names a file, the load writes there when each answered request began and ended.
//
// One thread does everything. It takes some 10 µs of CPU time for a request.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST_USERS = 4000,         // connections at a time
	BURST = 64,                // requests that are sent before answers are read again
	MOST_REQUEST = 4 << 20,    // bytes of a request
	MOST_HEADER = 1 << 20,     // bytes before a body
	MOST_LINE = 200,           // bytes of a header line that are looked at
	MOST_STATUS = 1000,        // statuses are below it
	MOST_ERRNO = 256,          // numbers of errors are below it
	MOST_RECORDED = 1 << 20,   // requests that are recorded
};
static const int64_t SECOND = 1000000000, PATIENCE = 60 * SECOND; // ns; how long an answer may take

static void die(const char *what) {
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

// Times are counted in cells whose widths are at most 1/256 of the times in them.
enum { CELLS = 60 << 8 };
struct histogram {
	int64_t count, cell[CELLS];
	double sum;
};

static void add(struct histogram *h, int64_t t) {
	if (t < 0)
		t = 0;
	int shift = t < 256 ? 0 : 63 - __builtin_clzll(t) - 8;
	h->cell[shift * 256 + (t >> shift)]++;
	h->count++;
	h->sum += t;
}

// bound is the least time in a cell, in ns.
static double bound(int cell) {
	int shift = cell < 512 ? 0 : cell / 256 - 1;
	return (double)((int64_t)(cell - shift * 256) << shift);
}

// quantile is a quantile in seconds, interpolated in its cell.
static double quantile(const struct histogram *h, double p) {
	double rank = p * h->count, below = 0;
	for (int i = 0; i < CELLS - 1; i++) {
		if (h->cell[i] > 0 && below + h->cell[i] >= rank)
			return (bound(i) + (bound(i + 1) - bound(i)) * (rank - below) / h->cell[i]) / SECOND;
		below += h->cell[i];
	}
	return 0;
}

// Where the reading of an answer stands.
enum place { STATUS, HEADER, LENGTH, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILER, TO_THE_END, COMPLETE, BROKEN };

struct answer {
	enum place at;
	int status, header; // bytes of header so far
	int64_t left;       // of the body or the chunk
	bool sized, chunked, close;
	int length; // of line
	char line[MOST_LINE];
};

struct user {
	int fd;
	enum { CLOSED, IDLE, OPENS, SENDS, WAITS } does;
	bool used;         // the connection has carried an answer
	int64_t began;     // ns
	size_t sent;       // bytes of the request
	struct user *next; // of the idle, or of those without a connection
	struct user *prev; // of the idle
	struct answer a;
};

struct span {
	int64_t began, ended; // ns
};

static struct {
	struct sockaddr_storage to;
	socklen_t to_length;
	char *request;
	size_t request_length;
	bool head; // its answers have no body
	int epoll, most, count, busy;
	struct user *users, *idle, *closed;
	struct histogram response, late;
	struct span *record; // NULL: not wanted
	int64_t start, last; // ns; last: when the last right answer was complete
	int64_t failed, unsent, cut, slow, foreign, status[MOST_STATUS], error[MOST_ERRNO];
} l;

static void unlink_idle(struct user *u) {
	*(u->prev ? &u->prev->next : &l.idle) = u->next;
	if (u->next)
		u->next->prev = u->prev;
}

static void hang_up(struct user *u) {
	if (u->does == IDLE)
		unlink_idle(u);
	else
		l.busy--;
	close(u->fd);
	u->does = CLOSED;
	u->next = l.closed;
	l.closed = u;
}

// fail counts a request under its cause and ends its connection.
static void fail(struct user *u, int64_t *cause) {
	l.failed++;
	++*cause;
	hang_up(u);
}

static int64_t *cause_of(int number) { return &l.error[number > 0 && number < MOST_ERRNO ? number : 0]; }

static void watch(struct user *u, int how, uint32_t events) {
	struct epoll_event e = {.events = events, .data.ptr = u};
	if (epoll_ctl(l.epoll, how, u->fd, &e) != 0)
		die("epoll_ctl");
}

// dial opens the user's connection for a request that began at u->began.
static void dial(struct user *u) {
	int one = 1;
	struct linger reset = {.l_onoff = 1}; // else each connection keeps its port for a minute after it is closed, and ports run out
	u->does = OPENS, u->used = false, u->sent = 0;
	memset(&u->a, 0, offsetof(struct answer, line));
	u->fd = socket(l.to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (u->fd >= 0) {
		setsockopt(u->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		setsockopt(u->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	}
	if (u->fd < 0 || (connect(u->fd, (struct sockaddr *)&l.to, l.to_length) != 0 && errno != EINPROGRESS))
		fail(u, cause_of(errno));
	else
		watch(u, EPOLL_CTL_ADD, EPOLLOUT);
}

// again makes the request over a new connection: the server has closed an idle one, which is its right.
static void again(struct user *u) {
	close(u->fd);
	dial(u);
}

static void send_rest(struct user *u) {
	ssize_t n = send(u->fd, l.request + u->sent, l.request_length - u->sent, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		if (u->used && (errno == EPIPE || errno == ECONNRESET))
			again(u);
		else
			fail(u, cause_of(errno));
		return;
	}
	u->sent += n > 0 ? n : 0;
	bool all = u->sent == l.request_length;
	if (u->does != WAITS && all)
		watch(u, EPOLL_CTL_MOD, EPOLLIN);
	else if (u->does == WAITS && !all)
		watch(u, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
	u->does = all ? WAITS : SENDS;
}

// ask sends the next request by a user that has a connection, or else by one that opens it.
static void ask(int64_t at) {
	struct user *u = l.idle;
	if (u) {
		unlink_idle(u);
		l.busy++;
		u->began = at, u->sent = 0, u->does = WAITS;
		memset(&u->a, 0, offsetof(struct answer, line));
		send_rest(u);
		return;
	}
	if (l.closed) {
		u = l.closed;
		l.closed = u->next;
	} else if (l.count < l.most) {
		u = &l.users[l.count++];
	} else {
		l.failed++, l.unsent++;
		return;
	}
	l.busy++;
	u->began = at;
	dial(u);
}

// header looks at a header line.
static void header(struct answer *a) {
	char *value = strchr(a->line, ':');
	if (!value)
		return;
	*value++ = 0;
	value += strspn(value, " \t");
	if (strcasecmp(a->line, "Content-Length") == 0) {
		char *end;
		errno = 0;
		long long n = strtoll(value, &end, 10);
		end += strspn(end, " \t");
		if (errno || end == value || *end || n < 0 || *value == '+' || (a->sized && a->left != n))
			a->at = BROKEN;
		a->left = n, a->sized = true;
	} else if (strcasecmp(a->line, "Transfer-Encoding") == 0) {
		a->chunked = strcasestr(value, "chunked") != NULL;
	} else if (strcasecmp(a->line, "Connection") == 0) {
		a->close = strcasestr(value, "close") || (a->close && !strcasestr(value, "keep-alive"));
	}
}

// body is where the reading goes on after the header.
static enum place body(struct answer *a) {
	if (a->status < 200 && a->status != 101) { // an interim answer; the final one follows
		a->sized = a->chunked = false;
		return STATUS;
	}
	if (l.head || a->status == 204 || a->status == 304)
		return COMPLETE;
	if (a->chunked)
		return CHUNK_SIZE;
	if (a->sized)
		return a->left > 0 ? LENGTH : COMPLETE;
	a->close = true;
	return TO_THE_END;
}

// line looks at a whole line of the answer.
static void line(struct answer *a) {
	a->line[a->length] = 0;
	bool empty = a->length == 0;
	a->length = 0;
	char *end;
	int minor, digits = 0;
	switch (a->at) {
	case STATUS:
		if (sscanf(a->line, "HTTP/1.%1d %3d%n", &minor, &a->status, &digits) != 2 || a->status < 100 || (a->line[digits] && a->line[digits] != ' ')) {
			a->at = BROKEN;
			return;
		}
		a->close = minor == 0;
		a->at = HEADER;
		return;
	case HEADER:
		if (empty)
			a->at = body(a);
		else
			header(a);
		return;
	case CHUNK_SIZE:
		errno = 0;
		a->left = strtoll(a->line, &end, 16);
		if (errno || a->left < 0 || end == a->line || !strchr("; \t", *end) || !strchr("0123456789abcdefABCDEF", a->line[0]))
			a->at = BROKEN;
		else
			a->at = a->left > 0 ? CHUNK : TRAILER;
		return;
	case CHUNK_END:
		a->at = empty ? CHUNK_SIZE : BROKEN;
		return;
	default: // TRAILER
		if (empty)
			a->at = COMPLETE;
	}
}

// take reads bytes of an answer and returns how many belong to it.
static size_t take(struct answer *a, const char *b, size_t n) {
	size_t i = 0;
	while (i < n && a->at < COMPLETE) {
		if (a->at == LENGTH || a->at == CHUNK) {
			size_t part = (int64_t)(n - i) < a->left ? n - i : (size_t)a->left;
			i += part, a->left -= part;
			if (a->left == 0)
				a->at = a->at == LENGTH ? COMPLETE : CHUNK_END;
		} else if (a->at == TO_THE_END) {
			i = n;
		} else if (b[i] == '\n') {
			if (a->length > 0 && a->line[a->length - 1] == '\r')
				a->length--;
			i++;
			line(a);
		} else {
			if (a->length < MOST_LINE - 1)
				a->line[a->length++] = b[i] ? b[i] : '?';
			i++;
			if (++a->header > MOST_HEADER)
				a->at = BROKEN;
		}
	}
	return i;
}

// complete counts an answer.
static void complete(struct user *u, bool close_it, int64_t at) {
	if (u->a.status >= 400) {
		fail(u, &l.status[u->a.status]);
		return;
	}
	if (l.record && l.response.count < MOST_RECORDED)
		l.record[l.response.count] = (struct span){u->began, at};
	add(&l.response, at - u->began);
	l.last = at;
	if (close_it || u->a.close) {
		hang_up(u);
		return;
	}
	l.busy--;
	u->does = IDLE, u->used = true;
	u->prev = NULL, u->next = l.idle;
	if (l.idle)
		l.idle->prev = u;
	l.idle = u;
}

static void receive(struct user *u) {
	static char buffer[256 << 10];
	ssize_t n = recv(u->fd, buffer, sizeof buffer, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (u->does == IDLE) { // closed by the server, or something that nobody asked for
		hang_up(u);
		return;
	}
	bool nothing = u->a.at == STATUS && u->a.header == 0;
	if (n <= 0 && nothing && u->used)
		again(u);
	else if (n < 0)
		fail(u, cause_of(errno));
	else if (n == 0 && u->a.at == TO_THE_END)
		complete(u, true, now());
	else if (n == 0)
		fail(u, &l.cut);
	else {
		size_t own = take(&u->a, buffer, n);
		if (u->a.at == BROKEN)
			fail(u, &l.foreign);
		else if (u->a.at == COMPLETE)
			complete(u, own < (size_t)n || u->does == SENDS, now());
	}
}

static void event(struct user *u, uint32_t events) {
	if (u->does == OPENS) {
		int number = 0;
		socklen_t size = sizeof number;
		getsockopt(u->fd, SOL_SOCKET, SO_ERROR, &number, &size);
		if (number != 0) {
			fail(u, cause_of(number));
			return;
		}
		send_rest(u);
		return;
	}
	if (u->does == SENDS && events & EPOLLOUT) {
		send_rest(u);
		return;
	}
	receive(u);
}

// give_up fails the requests that have waited for too long.
static void give_up(int64_t at) {
	for (int i = 0; i < l.count; i++) {
		struct user *u = &l.users[i];
		if (u->does > IDLE && at - u->began > PATIENCE)
			fail(u, &l.slow);
	}
}

// run sends all requests and waits for their answers.
static void run(double rate, int64_t requests) {
	struct epoll_event events[512];
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct epoll_event tick = {.events = EPOLLIN | EPOLLET};
	if (timer < 0 || epoll_ctl(l.epoll, EPOLL_CTL_ADD, timer, &tick) != 0)
		die("a timer");
	int64_t sent = 0, checked = now();
	l.start = checked + SECOND / 1000;
	while (sent < requests || l.busy > 0) {
		int64_t at = now(), due = 0;
		for (int n = 0; n < BURST && sent < requests && (due = l.start + (int64_t)(sent / rate * SECOND)) <= at; n++, sent++, at = now()) {
			add(&l.late, at - due);
			ask(at);
		}
		if (sent < requests) {
			struct itimerspec t = {.it_value = {due / SECOND, due % SECOND}};
			if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL) != 0)
				die("timerfd_settime");
		}
		int n = epoll_wait(l.epoll, events, sizeof events / sizeof *events, 1000);
		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++)
			if (events[i].data.ptr)
				event(events[i].data.ptr, events[i].events);
		if (at - checked > SECOND) {
			give_up(at);
			checked = at;
		}
	}
}

// worst writes the most frequent cause of failures.
static void worst(FILE *to) {
	int64_t most = l.unsent;
	char text[200];
	snprintf(text, sizeof text, "not sent, because all %d users waited for answers", l.most);
	for (int i = 0; i < MOST_STATUS; i++)
		if (l.status[i] > most)
			most = l.status[i], snprintf(text, sizeof text, "status %d: must be below 400", i);
	for (int i = 0; i < MOST_ERRNO; i++)
		if (l.error[i] > most)
			most = l.error[i], snprintf(text, sizeof text, "%s", strerror(i));
	if (l.cut > most)
		most = l.cut, snprintf(text, sizeof text, "the connection was closed before the end of the answer");
	if (l.slow > most)
		most = l.slow, snprintf(text, sizeof text, "no answer within %d s", (int)(PATIENCE / SECOND));
	if (l.foreign > most)
		snprintf(text, sizeof text, "the answer is not HTTP/1.1");
	fputs(text, to);
}

static char *file(const char *name, size_t *length) {
	char *text = malloc(MOST_REQUEST);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (!text || fd < 0)
		die(name);
	ssize_t n;
	for (*length = 0; (n = read(fd, text + *length, MOST_REQUEST - *length)) > 0; *length += n)
		;
	if (n < 0)
		die(name);
	close(fd);
	return text;
}

// compose makes the request of the file.
static void compose(const char *name, const char *path, const char *host, const char *port) {
	size_t length;
	char *text = file(name, &length), *rest = memchr(text, '\n', length);
	if (!rest || rest == text || rest - text > 100) {
		fprintf(stderr, "load: %s: its first line must be a method\n", name);
		exit(2);
	}
	int method = (int)(rest - text);
	rest++;
	l.head = method == 4 && memcmp(text, "HEAD", 4) == 0;
	char *end = memmem(rest, length - (rest - text), "\r\n\r\n", 4), *own = NULL;
	for (char *at = rest; end && at && at < end && !own; at = memchr(at, '\n', end - at), at = at ? at + 1 : NULL)
		if (strncasecmp(at, "Host:", 5) == 0)
			own = at;
	size_t room = length + strlen(path) + strlen(host) + strlen(port) + 64;
	l.request = malloc(room);
	if (!l.request)
		die("memory");
	int n = snprintf(l.request, room, "%.*s %s HTTP/1.1\r\n", method, text, path);
	if (!own)
		n += snprintf(l.request + n, room - n, strchr(host, ':') ? "Host: [%s]:%s\r\n" : "Host: %s:%s\r\n", host, port);
	memcpy(l.request + n, rest, length - (rest - text));
	l.request_length = n + length - (rest - text);
	free(text);
}

static void aim(const char *host, const char *port) {
	struct sockaddr_in *v4 = (struct sockaddr_in *)&l.to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&l.to;
	int number = atoi(port);
	if (number > 0 && number < 65536 && inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET, v4->sin_port = htons(number), l.to_length = sizeof *v4;
	} else if (number > 0 && number < 65536 && inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6, v6->sin6_port = htons(number), l.to_length = sizeof *v6;
	} else {
		fprintf(stderr, "load: %s and %s: must be a numeric address and a port\n", host, port);
		exit(2);
	}
}

// write_record writes the times of the answered requests.
static void write_record(const char *name) {
	FILE *f = fopen(name, "wxe");
	if (!f)
		die(name);
	fputs("monotonic\n", f);
	for (int64_t i = 0; i < l.response.count && i < MOST_RECORDED; i++)
		fprintf(f, "%lld %lld %lld\n", (long long)i, (long long)l.record[i].began, (long long)l.record[i].ended);
	if (fclose(f) != 0)
		die(name);
}

int main(int argc, char **argv) {
	double rate = argc > 5 ? atof(argv[5]) : 1, seconds = argc > 6 ? atof(argv[6]) : 1;
	bool ready = argc == 5;
	if ((argc != 5 && argc != 7) || !(rate > 0 && rate <= 1e6) || !(seconds > 0 && seconds <= 86400)) {
		fputs("load ADDRESS PORT PATH FILE [RATE SECONDS]: RATE must be at most 1000000, SECONDS at most 86400\n", stderr);
		return 2;
	}
	aim(argv[1], argv[2]);
	compose(argv[4], argv[3], argv[1], argv[2]);
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		die("getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		die("setrlimit");
	l.most = files.rlim_cur < MOST_USERS + 32 ? (int)files.rlim_cur - 32 : MOST_USERS;
	l.users = calloc(MOST_USERS, sizeof *l.users);
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!l.users || l.epoll < 0 || l.most < 1)
		die("connections");
	int64_t requests = ready ? 1 : (int64_t)(rate * seconds + 0.5);
	const char *record = getenv("TARE_REQUESTS");
	if (record && !(l.record = calloc(MOST_RECORDED, sizeof *l.record)))
		die("the record");
	run(rate, requests);
	if (record)
		write_record(record);

	int64_t right = l.response.count;
	if (l.failed > 0) {
		fprintf(stderr, "%lld of %lld requests failed: ", (long long)l.failed, (long long)requests);
		worst(stderr);
		fputc('\n', stderr);
	}
	if (ready)
		return right == 0;
	if (right == 0)
		return 0;
	double took = (double)(l.last - l.start) / SECOND, late = quantile(&l.late, 0.99);
	printf("{\"mean\":%.9f,\"p50\":%.9f,\"p95\":%.9f,\"p99\":%.9f,\"late\":%.9f,\"errors\":%lld,\"requests\":%lld,\"requests_per_second\":%.6f}\n",
		l.response.sum / right / SECOND, quantile(&l.response, 0.5), quantile(&l.response, 0.95), quantile(&l.response, 0.99), late < 0.001 ? 0 : late,
		(long long)l.failed, (long long)requests, right / (took > seconds ? took : seconds));
	return 0;
}
