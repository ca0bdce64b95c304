/*
 * events KIND MS FILE: lets one kind of event happen again and again, for at least MS of the clock, and prints the time of one:
 *
 *   {"event": SECONDS, "events": NUMBER}
 *
 * events is how many happened, those included that were needed to find out how many fill the time.
 *
 * FILE is a path to which it can write. The kinds are those of the table at the end. A kind that the kernel refuses is a failure.
 *
 * Exit status: 0, 1 for a failure, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define LARGE 65536 /* bytes of a large transfer; a pipe holds as many */
#define FILE_PAGES 256
#define SMALL 64 /* bytes of a small one */

static const char *file, *self;
static char buffer[LARGE] __attribute__((aligned(PAGE)));
static int fd, from, to; /* the descriptors of a kind */

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* made opens FILE, which has FILE_PAGES pages in the page cache. */
static void made_with(int how)
{
	static char page[PAGE] = {1};

	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | how, 0600);
	check(fd >= 0, file);
	for (int i = 0; i < FILE_PAGES; i++)
		check(pwrite(fd, how ? buffer : page, PAGE, (off_t)i * PAGE) == PAGE, file);
}

static void made(void) { made_with(0); }

static void made_synced(void)
{
	made();
	check(!fsync(fd), "fsync");
}

static void made_direct(void) { made_with(O_DIRECT); }

static void none(void) {}

static volatile uint64_t sink;

static void cpu(long n)
{
	uint64_t x = 42;

	for (; n; n--)
		for (int i = 0; i < 1000; i++)
			x = 6364136223846793005ULL * x + 1442695040888963407ULL;
	sink = x;
}

static void clock_read(long n)
{
	struct timespec t;

	while (n--)
		check(!clock_gettime(CLOCK_MONOTONIC, &t), "clock_gettime");
}

static void simple(long n)
{
	while (n--)
		check(syscall(SYS_getppid) >= 0, "getppid");
}

static void descriptor(long n)
{
	struct stat s;

	while (n--)
		check(!fstat(fd, &s), "fstat");
}

static void duplicate(long n)
{
	while (n--) {
		int f = dup(fd);

		check(f >= 0 && !close(f), "dup");
	}
}

static void path(long n)
{
	struct stat s;

	while (n--)
		check(!stat(file, &s), "stat");
}

static void opens(long n)
{
	while (n--) {
		int f = open(file, O_RDONLY);

		check(f >= 0 && !close(f), "open");
	}
}

static void create(long n)
{
	while (n--) {
		int f = open(file, O_RDWR | O_CREAT | O_EXCL, 0600);

		check(f >= 0 && !close(f) && !unlink(file), "create");
	}
}

static void file_read(long n)
{
	for (; n; n--)
		check(pread(fd, buffer, PAGE, n % FILE_PAGES * PAGE) == PAGE, "pread");
}

static void file_read_large(long n)
{
	while (n--)
		check(pread(fd, buffer, LARGE, 0) == LARGE, "pread");
}

static void file_write(long n)
{
	for (; n; n--)
		check(pwrite(fd, buffer, PAGE, n % FILE_PAGES * PAGE) == PAGE, "pwrite");
}

static void sync_write(long n)
{
	for (; n; n--)
		check(pwrite(fd, buffer, PAGE, n % FILE_PAGES * PAGE) == PAGE && !fdatasync(fd), "fdatasync");
}

static void pipes(void)
{
	int p[2];

	check(!pipe(p), "pipe");
	from = p[0], to = p[1];
}

static void transfer(long n, size_t bytes)
{
	while (n--) {
		check(write(to, buffer, bytes) == (ssize_t)bytes, "write");
		for (size_t got = 0; got < bytes;) {
			ssize_t r = read(from, buffer, bytes - got);

			check(r > 0, "read");
			got += r;
		}
	}
}

static void small(long n) { transfer(n, SMALL); }
static void large(long n) { transfer(n, LARGE); }

static void local(void)
{
	int p[2];

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair");
	from = p[0], to = p[1];
}

static struct sockaddr_in here;

static void listens(void)
{
	socklen_t size = sizeof here;

	here = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	fd = socket(AF_INET, SOCK_STREAM, 0);
	check(fd >= 0 && !bind(fd, (void *)&here, sizeof here) && !listen(fd, 64) && !getsockname(fd, (void *)&here, &size), "listen");
}

static void connects(void)
{
	int one = 1;

	to = socket(AF_INET, SOCK_STREAM, 0);
	check(to >= 0 && !connect(to, (void *)&here, sizeof here), "connect");
	from = accept(fd, 0, 0);
	check(from >= 0 && !setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "accept");
}

static void tcp(void)
{
	listens();
	connects();
}

/* The end that closes first resets the connection, so that none is left behind. */
static void connection(long n)
{
	struct linger reset = {1, 0};

	while (n--) {
		connects();
		check(!setsockopt(to, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) && !close(to) && !close(from), "close");
	}
}

static void memory(long n)
{
	while (n--) {
		void *at = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		check(at != MAP_FAILED && !munmap(at, PAGE), "mmap");
	}
}

/* touch writes to n pages of new memory, FILE_PAGES at a time. */
static void touch(long n, int flags, int of)
{
	while (n > 0) {
		long pages = n < FILE_PAGES ? n : FILE_PAGES;
		char *at = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, flags, of, 0);

		check(at != MAP_FAILED, "mmap");
		check(!madvise(at, pages * PAGE, MADV_NOHUGEPAGE) || errno == EINVAL, "madvise"); /* EINVAL: there are no huge pages */
		for (long i = 0; i < pages; i++)
			((volatile char *)at)[i * PAGE] = 1;
		check(!munmap(at, pages * PAGE), "munmap");
		n -= pages;
	}
}

static void fault(long n) { touch(n, MAP_PRIVATE | MAP_ANONYMOUS, -1); }
static void shared_fault(long n) { touch(n, MAP_SHARED | MAP_ANONYMOUS, -1); }
static void file_fault(long n) { touch(n, MAP_PRIVATE, fd); }

static int word;

static void futex(long n)
{
	while (n--)
		check(!syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), "futex");
}

static void polled(void)
{
	struct epoll_event e = {.events = EPOLLIN};

	pipes();
	fd = epoll_create1(0);
	check(fd >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, from, &e), "epoll");
}

static void poll_none(long n)
{
	struct epoll_event e;

	while (n--)
		check(!epoll_wait(fd, &e, 1, 0), "epoll_wait");
}

static void sleep_short(long n)
{
	struct timespec t = {0, 100000};

	while (n--)
		check(!clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0), "clock_nanosleep");
}

/* The other end of pipes answers each byte, in another process or thread. It ends with the program. */
static int there, back;

static void *answer(void *unused)
{
	char b;

	while (read(there, &b, 1) == 1)
		if (write(back, &b, 1) != 1)
			break;
	return unused;
}

static void cross(void)
{
	pipes();
	there = from;
	int first = to;
	pipes();
	back = to;
	to = first;
}

static void process_answers(void)
{
	pid_t p = fork();
	check(p >= 0, "fork");
	if (!p) {
		close(to); /* so that the program's end is the end of what it reads */
		close(from);
		answer(0);
		_exit(0);
	}
	close(there);
	close(back);
}

static void process(void)
{
	cross();
	process_answers();
}

/* The two ends of a connection over the loopback. */
static void process_tcp(void)
{
	int one = 1;

	tcp();
	check(!setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "setsockopt");
	there = from;
	back = dup(from);
	from = dup(to);
	check(back >= 0 && from >= 0, "dup");
	process_answers();
}

static void thread(void)
{
	pthread_t t;

	cross();
	errno = pthread_create(&t, 0, answer, 0);
	check(!errno, "pthread_create");
}

static void trip(long n)
{
	char b = 1;

	while (n--)
		check(write(to, &b, 1) == 1 && read(from, &b, 1) == 1, "trip");
}

/* Two threads hand a turn to each other: 1 is that of the answer. */
static int turn;

static void await(int mine)
{
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != mine)
		check(!syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !mine, 0, 0, 0) || errno == EAGAIN || errno == EINTR, "futex");
}

static void hand_over(int to_whom)
{
	__atomic_store_n(&turn, to_whom, __ATOMIC_RELEASE);
	check(syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0) >= 0, "futex");
}

static void *hands_back(void *unused)
{
	for (;;) {
		await(1);
		hand_over(0);
	}
	return unused;
}

static void thread_futex(void)
{
	pthread_t t;

	errno = pthread_create(&t, 0, hands_back, 0);
	check(!errno, "pthread_create");
}

static void trip_futex(long n)
{
	while (n--) {
		hand_over(1);
		await(0);
	}
}

static void forks(long n)
{
	while (n--) {
		pid_t p = fork();
		int status;

		check(p >= 0, "fork");
		if (!p)
			_exit(0);
		check(waitpid(p, &status, 0) == p && !status, "waitpid");
	}
}

static void *nothing(void *p) { return p; }

static void threads(long n)
{
	while (n--) {
		pthread_t t;

		errno = pthread_create(&t, 0, nothing, 0);
		check(!errno, "pthread_create");
		errno = pthread_join(t, 0);
		check(!errno, "pthread_join");
	}
}

static void execs(long n)
{
	while (n--) {
		pid_t p = vfork();
		int status;

		check(p >= 0, "vfork");
		if (!p) {
			execl(self, self, "nothing", (char *)0);
			_exit(1);
		}
		check(waitpid(p, &status, 0) == p && !status, "a program that does nothing");
	}
}

static volatile long signals;

static void handle(int s) { signals += s > 0; }

static void handled(void) { check(signal(SIGUSR1, handle) != SIG_ERR, "signal"); }

static void signal_self(long n)
{
	long before = signals;

	for (long i = 0; i < n; i++)
		check(!raise(SIGUSR1), "raise");
	check(signals - before == n, "signals");
}

/* A ring with one entry, for requests that do nothing. */
static struct {
	unsigned *sq_tail, *sq_array, *cq_head, *cq_tail, sq_mask;
	struct io_uring_sqe *entries;
} ring;

static void ringed(void)
{
	struct io_uring_params p = {0};

	fd = syscall(SYS_io_uring_setup, 4, &p);
	check(fd >= 0, "io_uring_setup");
	size_t sq = p.sq_off.array + p.sq_entries * sizeof(unsigned), cq = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	char *s = mmap(0, sq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
	char *c = mmap(0, cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_CQ_RING);

	ring.entries = mmap(0, p.sq_entries * sizeof *ring.entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);
	check(s != MAP_FAILED && c != MAP_FAILED && ring.entries != MAP_FAILED, "io_uring");
	ring.sq_tail = (void *)(s + p.sq_off.tail);
	ring.sq_array = (void *)(s + p.sq_off.array);
	ring.sq_mask = *(unsigned *)(s + p.sq_off.ring_mask);
	ring.cq_head = (void *)(c + p.cq_off.head);
	ring.cq_tail = (void *)(c + p.cq_off.tail);
}

static void uring(long n)
{
	while (n--) {
		unsigned tail = *ring.sq_tail, at = tail & ring.sq_mask, head = *ring.cq_head;

		ring.entries[at] = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
		ring.sq_array[at] = at;
		__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
		check(syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) == 1, "io_uring_enter");
		check(__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == head + 1, "io_uring");
		__atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
	}
}

static const struct kind {
	const char *name;
	void (*prepare)(void), (*happen)(long n);
} kinds[] = {
    {"cpu", none, cpu},			   /* a thousand steps of a multiplication */
    {"clock", none, clock_read},	   /* a reading of the clock */
    {"simple", none, simple},		   /* getppid */
    {"descriptor", made, descriptor},	   /* fstat */
    {"duplicate", made, duplicate},	   /* a descriptor duplicated and closed */
    {"path", made, path},		   /* stat */
    {"open", made, opens},		   /* a file opened and closed */
    {"create", none, create},		   /* a file made, closed and removed */
    {"file-read", made, file_read},	   /* a page read from the page cache */
    {"file-read-large", made, file_read_large}, /* 64 KiB of it */
    {"file-write", made, file_write},	   /* a page written to the page cache */
    {"file-sync", made_synced, sync_write}, /* the same, and flushed to the disk */
    {"file-direct", made_direct, file_read}, /* a page read from the disk */
    {"pipe", pipes, small},		   /* 64 bytes written to a pipe and read from it by the same thread */
    {"pipe-large", pipes, large},	   /* 64 KiB */
    {"unix", local, small},		   /* 64 bytes through a Unix socket */
    {"tcp", tcp, small},		   /* 64 bytes through TCP on the loopback interface */
    {"tcp-large", tcp, large},		   /* 64 KiB */
    {"connection", listens, connection},   /* a connection made, accepted and closed */
    {"memory", none, memory},		   /* a page of memory mapped and unmapped, without use */
    {"fault", none, fault},		   /* a page of new memory written to */
    {"fault-shared", none, shared_fault},  /* of memory that processes can share */
    {"fault-file", made, file_fault},	   /* of a file's private copy */
    {"futex", none, futex},		   /* a lock opened for which nobody waits */
    {"poll", polled, poll_none},	   /* epoll_wait that does not wait */
    {"sleep", none, sleep_short},	   /* a sleep of 0.1 ms */
    {"trip", process, trip},		   /* a byte to another process and back */
    {"trip-thread", thread, trip},	   /* to another thread and back */
    {"trip-tcp", process_tcp, trip},	   /* to another process and back, through TCP on the loopback interface */
    {"trip-futex", thread_futex, trip_futex}, /* a turn to another thread and back, by futex */
    {"fork", none, forks},		   /* a process made, ended and waited for */
    {"thread", none, threads},		   /* a thread made, ended and waited for */
    {"exec", none, execs},		   /* a program executed by a new process, and waited for */
    {"signal", handled, signal_self},	   /* a signal to itself, and its handler */
    {"io-uring", ringed, uring},	   /* a request of io_uring that does nothing */
};

static double now(void)
{
	struct timespec t;

	check(!clock_gettime(CLOCK_MONOTONIC, &t), "clock_gettime");
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The clock is read only before and after all events. Too few of them are not the measurement, but say how many are needed. */
static int measure(const struct kind *k, double seconds)
{
	double took;
	long total = 0;

	k->prepare();
	for (long n = 1;;) {
		double begin = now();

		k->happen(n);
		total += n;
		took = now() - begin;
		if (took >= seconds) {
			printf("{\"event\": %.9g, \"events\": %ld}\n", took / n, total);
			return fflush(stdout) ? 1 : 0;
		}
		double more = took > 0 ? 1.2 * seconds / took : 10;
		n = n * (more < 10 ? more : 10) + 1;
	}
}

int main(int argc, char **argv)
{
	char *end = "";
	long ms = argc == 4 ? strtol(argv[2], &end, 10) : 0;

	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	self = argv[0];
	for (size_t i = 0; argc == 4 && i < sizeof kinds / sizeof *kinds; i++)
		if (ms > 0 && !*end && !strcmp(argv[1], kinds[i].name)) {
			file = argv[3];
			return measure(&kinds[i], ms * 1e-3);
		}
	fprintf(stderr, "usage: events KIND MS FILE\n");
	return 2;
}
