/*
 * load MODE ARGUMENT…: a load whose figures are known beforehand, for the tests of the probes. Times are in ms.
 *
 *   run RUN SLEEP TIMES     uses RUN of CPU time, then sleeps SLEEP; TIMES times
 *   busy MS                 wants a CPU for MS of the clock, in its own code
 *   system MS               uses MS of CPU time, nearly all in the kernel
 *   anonymous PAGES         writes to PAGES fresh pages without a file: as many minor faults
 *   file PATH PAGES         makes PATH and writes to PAGES pages of it, mapped and cached: as many minor faults
 *   major PATH PAGES        makes PATH, has the kernel forget it, reads PAGES mapped pages: as many major faults
 *   migrate A B TIMES       TIMES moves between the CPUs A and B, after one to A
 *   write PATH BLOCKS       writes BLOCKS of 4096 bytes past the cache, one request each
 *   read PATH BLOCKS        the same, and reads them back likewise
 *   pingpong TIMES          TIMES round trips of a byte through pipes between two processes
 *   answers A B TIMES       TIMES datagrams of lo from CPU A to a process on CPU B, and as many answers; each wakes who waits for it
 *   futex MS TIMES          waits MS on a futex, TIMES times
 *   sleep MS TIMES          sleeps MS, TIMES times
 *   socket MS TIMES         waits MS for a datagram that does not come, TIMES times
 *   signal MS TIMES         waits MS for a signal that does not come, TIMES times: a wait of no other kind
 *   files MS TIMES          waits MS for a new pipe, and MS for a new socket, TIMES times, by read(2)
 *   datagrams TIMES BYTES   sends itself TIMES UDP datagrams of BYTES over lo, and receives each
 *   threads N MS            N threads that each want a CPU for MS of the clock
 *   leaderless MS           its first thread ends at once; another says something every 5 ms for MS, on the standard error
 *
 * With "gate" before the mode it says "ready" and begins when it has read a byte; after its work it says "done" and ends when its
 * input ends. So what it did lies between two lines, its own start and end outside.
 * Exit status 0, 1 for a failure, 2 for wrong arguments; one line says what.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(clockid_t clock)
{
	struct timespec t;

	check(!clock_gettime(clock, &t), "clock_gettime");
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static struct timespec of(long ms)
{
	return (struct timespec){ms / 1000, ms % 1000 * 1000000};
}

static void spin(clockid_t clock, long ms)
{
	double end = now(clock) + ms;

	while (now(clock) < end)
		for (volatile int i = 0; i < 20000; i++) /* long beside the system call that reads a thread's clock */
			;
}

static void rest(long ms)
{
	struct timespec t = of(ms);

	check(!clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), "clock_nanosleep");
}

static void run(long ms, long pause, long times)
{
	while (times--) {
		spin(CLOCK_THREAD_CPUTIME_ID, ms);
		rest(pause);
	}
}

static void kernel(long ms)
{
	static char b[1 << 20];
	int fd = open("/dev/zero", O_RDONLY);
	double end = now(CLOCK_THREAD_CPUTIME_ID) + ms;

	check(fd >= 0, "/dev/zero");
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		check(read(fd, b, sizeof b) == sizeof b, "read /dev/zero");
}

static void anonymous(long pages)
{
	long size = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(at != MAP_FAILED, "mmap");
	check(!madvise(at, pages * size, MADV_NOHUGEPAGE) || errno == EINVAL, "madvise"); /* EINVAL: there are no huge pages */
	for (long i = 0; i < pages; i++)
		((volatile char *)at)[i * size] = 1;
}

static int fill(const char *path, long blocks, long size, int flags)
{
	char *b = aligned_alloc(BLOCK, size);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | flags, 0600);

	check(fd >= 0, path);
	check(b != NULL, "memory");
	memset(b, 1, size);
	while (blocks--)
		check(write(fd, b, size) == size, path);
	free(b);
	return fd;
}

static char *map(int fd, long pages, long size)
{
	char *at = mmap(NULL, pages * size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	check(at != MAP_FAILED, "mmap");
	check(!madvise(at, pages * size, MADV_RANDOM), "madvise");
	return at;
}

/* The kernel maps neighbours too where a page of a file is first read, but not where it is first written. */
static void cached(char *at, long pages, long size)
{
	for (long i = 0; i < pages; i++)
		((volatile char *)at)[i * size] = 2;
}

static void uncached(char *at, long pages, long size)
{
	for (long i = 0; i < pages; i++)
		(void)((volatile char *)at)[i * size];
}

static void migrate(int a, int b, long times)
{
	cpu_set_t set;

	for (long i = 0; i <= times; i++) {
		CPU_ZERO(&set);
		CPU_SET(i % 2 ? b : a, &set);
		check(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
	}
}

static void again(int fd, long blocks)
{
	char *b = aligned_alloc(BLOCK, BLOCK);

	check(b != NULL, "memory");
	for (long i = 0; i < blocks; i++)
		check(pread(fd, b, BLOCK, i * BLOCK) == BLOCK, "read");
}

static void pingpong(long times)
{
	int to[2], from[2];
	char c = 0;

	check(!pipe(to) && !pipe(from), "pipe");
	pid_t child = fork();
	check(child >= 0, "fork");
	if (!child) {
		close(to[1]);
		while (read(to[0], &c, 1) == 1)
			check(write(from[1], &c, 1) == 1, "write");
		_exit(0);
	}
	while (times--)
		check(write(to[1], &c, 1) == 1 && read(from[0], &c, 1) == 1, "pipe");
	close(to[1]);
	check(waitpid(child, NULL, 0) == child, "wait");
}

static void futex(long ms, long times)
{
	static uint32_t word;
	struct timespec t = of(ms);

	while (times--)
		check(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0) == -1 && errno == ETIMEDOUT, "futex");
}

/* A UDP socket of lo that sends to itself. */
static int own(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	struct ifreq lo = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	check(fd >= 0, "socket");
	check(!ioctl(fd, SIOCGIFFLAGS, &lo), "lo");
	if (!(lo.ifr_flags & IFF_UP)) { /* a network namespace of its own */
		lo.ifr_flags |= IFF_UP;
		check(!ioctl(fd, SIOCSIFFLAGS, &lo), "lo up");
	}
	check(!bind(fd, (void *)&at, n) && !getsockname(fd, (void *)&at, &n) && !connect(fd, (void *)&at, n), "bind");
	return fd;
}

static void deaf(int fd, long ms, long times)
{
	struct timeval t = {ms / 1000, ms % 1000 * 1000};
	char c;

	check(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), "setsockopt");
	while (times--)
		check(recv(fd, &c, 1, 0) == -1 && errno == EAGAIN, "recv");
}

static void signalled(long ms, long times)
{
	struct timespec t = of(ms);
	sigset_t set;

	check(!sigemptyset(&set) && !sigaddset(&set, SIGUSR1) && !sigprocmask(SIG_BLOCK, &set, NULL), "sigprocmask");
	while (times--)
		check(sigtimedwait(&set, NULL, &t) == -1 && errno == EAGAIN, "sigtimedwait");
}

static void nothing(int s)
{
	(void)s;
}

static void files(long ms, long times)
{
	struct timeval after = {ms / 1000, ms % 1000 * 1000};
	struct itimerval every = {after, after}, never = {0}; /* again and again, for the first may come before the wait */
	struct sigaction a = {.sa_handler = nothing};

	check(!sigaction(SIGALRM, &a, NULL), "sigaction");
	for (long i = 0; i < 2 * times; i++) {
		int fd[2];
		char c;
		check(!(i % 2 ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd)), "pipe");
		check(!setitimer(ITIMER_REAL, &every, NULL), "setitimer");
		check(read(fd[0], &c, 1) < 0 && errno == EINTR, "read");
		check(!setitimer(ITIMER_REAL, &never, NULL), "setitimer");
		check(!close(fd[0]) && !close(fd[1]), "close");
	}
}

static void datagrams(int fd, long times, long size)
{
	char *b = calloc(1, size);

	check(b != NULL, "memory");
	while (times--)
		check(send(fd, b, size, 0) == size && recv(fd, b, size, 0) == size, "datagram");
}

static void answers(int a, int b, long times)
{
	int to = own(), from = own(), child;
	char c = 0;
	struct sockaddr_in at_to, at_from;
	socklen_t n = sizeof at_to;

	check(!getsockname(to, (void *)&at_to, &n) && !getsockname(from, (void *)&at_from, &n), "getsockname");
	check(!connect(to, (void *)&at_from, n) && !connect(from, (void *)&at_to, n), "connect");
	child = fork();
	check(child >= 0, "fork");
	migrate(child ? a : b, 0, 0);
	for (long i = 0; i < times; i++)
		check(child ? send(to, &c, 1, 0) == 1 && recv(to, &c, 1, 0) == 1 : recv(from, &c, 1, 0) == 1 && send(from, &c, 1, 0) == 1, "datagram");
	if (!child)
		_exit(0);
	check(waitpid(child, NULL, 0) == child, "wait");
}

static void *busy(void *ms)
{
	spin(CLOCK_MONOTONIC, (long)ms);
	return NULL;
}

static void threads(long n, long ms)
{
	pthread_t all[256];

	if (n > 256) {
		fprintf(stderr, "%ld threads, at most 256\n", n);
		exit(2);
	}
	for (long i = 0; i < n; i++)
		check(!(errno = pthread_create(&all[i], NULL, busy, (void *)ms)), "pthread_create");
	for (long i = 0; i < n; i++)
		check(!(errno = pthread_join(all[i], NULL)), "pthread_join");
}

static void *heir(void *ms)
{
	for (long t = 0; t < (long)ms; t += 5) {
		rest(5);
		check(write(2, ".", 1) == 1, "write");
	}
	exit(0);
}

static void leaderless(long ms)
{
	pthread_t t;

	check(!(errno = pthread_create(&t, NULL, heir, (void *)ms)), "pthread_create");
	pthread_exit(NULL);
}

static int gated;

static void begin(void)
{
	char c;

	if (gated)
		check(write(1, "ready\n", 6) == 6 && read(0, &c, 1) == 1, "gate");
}

static long number(const char *s)
{
	char *end;
	long n = strtol(s, &end, 10);

	if (*s == 0 || *end || n < 0) {
		fprintf(stderr, "%s: expected a number, at least 0\n", s);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	long page = sysconf(_SC_PAGESIZE), n[3] = {0};
	const char *path = NULL, *mode;
	char end;

	argv++, argc--;
	if (argc && !strcmp(*argv, "gate"))
		gated = 1, argv++, argc--;
	mode = argc ? argv++[0] : "";
	if (argc > 1 && (!strcmp(mode, "file") || !strcmp(mode, "major") || !strcmp(mode, "write") || !strcmp(mode, "read")))
		path = argv++[0], argc--;
	argc--;
	for (int i = 0; i < argc && i < 3; i++)
		n[i] = number(argv[i]);

#define MODE(name, count) (!strcmp(mode, name) && argc == (count))
	if (MODE("run", 3)) {
		begin();
		run(n[0], n[1], n[2]);
	} else if (MODE("busy", 1)) {
		begin();
		spin(CLOCK_MONOTONIC, n[0]);
	} else if (MODE("system", 1)) {
		begin();
		kernel(n[0]);
	} else if (MODE("anonymous", 1)) {
		begin();
		anonymous(n[0]);
	} else if (MODE("file", 1) && path) {
		char *at = map(fill(path, n[0], page, 0), n[0], page);
		begin();
		cached(at, n[0], page);
	} else if (MODE("major", 1) && path) {
		int fd = fill(path, n[0], page, 0);
		check(!fsync(fd), "fsync");
		check(!(errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)), "posix_fadvise");
		char *at = map(fd, n[0], page);
		begin();
		uncached(at, n[0], page);
	} else if (MODE("migrate", 3)) {
		begin();
		migrate(n[0], n[1], n[2]);
	} else if (MODE("write", 1) && path) {
		begin();
		fill(path, n[0], BLOCK, O_DIRECT);
	} else if (MODE("read", 1) && path) {
		int fd = fill(path, n[0], BLOCK, O_DIRECT);
		begin();
		again(fd, n[0]);
	} else if (MODE("answers", 3)) {
		begin();
		answers(n[0], n[1], n[2]);
	} else if (MODE("pingpong", 1)) {
		begin();
		pingpong(n[0]);
	} else if (MODE("futex", 2)) {
		begin();
		futex(n[0], n[1]);
	} else if (MODE("sleep", 2)) {
		begin();
		while (n[1]--)
			rest(n[0]);
	} else if (MODE("socket", 2)) {
		int fd = own();
		begin();
		deaf(fd, n[0], n[1]);
	} else if (MODE("signal", 2)) {
		begin();
		signalled(n[0], n[1]);
	} else if (MODE("files", 2)) {
		begin();
		files(n[0], n[1]);
	} else if (MODE("datagrams", 2)) {
		int fd = own();
		begin();
		datagrams(fd, n[0], n[1]);
	} else if (MODE("threads", 2)) {
		begin();
		threads(n[0], n[1]);
	} else if (MODE("leaderless", 1) && !gated) {
		leaderless(n[0]);
	} else {
		fprintf(stderr, "load: expected [gate] MODE and its arguments, as load.c says\n");
		return 2;
	}
	if (gated)
		check(write(1, "done\n", 5) == 5 && read(0, &end, 1) == 0, "gate");
	return 0;
}
