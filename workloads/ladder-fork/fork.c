/*
 * fork run CHILDREN ANSWER: calls fork, execve of this program and waitpid, CHILDREN times in succession. The exit status of the i-th child is a
 * number computed from i. It writes their sum to ANSWER.
 * fork check CHILDREN ANSWER: checks the sum without a child.
 * fork child I: runs as the i-th child.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. A child's is its number. One line says what failed.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED 255 /* exit status of a child that could not be executed; greater than any number of a child */

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static int number(uint64_t i)
{
	return ((i * 6364136223846793005ULL + 1442695040888963407ULL) >> 32) % 251;
}

static int child(char *self, uint64_t i)
{
	char text[24], *argv[] = {self, "child", text, NULL}, *env[] = {NULL};
	int status;
	pid_t pid, ended;

	snprintf(text, sizeof text, "%llu", (unsigned long long)i);
	pid = fork();
	if (pid < 0)
		fail("fork", strerror(errno));
	if (!pid) {
		execve(self, argv, env);
		fprintf(stderr, "%s: %s\n", self, strerror(errno));
		_exit(FAILED);
	}
	while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	if (ended < 0)
		fail("waitpid", strerror(errno));
	if (!WIFEXITED(status))
		fail("a child was killed", strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) == FAILED)
		exit(1); /* the child has printed why */
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int is_child = argc == 3 && !strcmp(what, "child"), run = argc == 4 && !strcmp(what, "run"), check = argc == 4 && !strcmp(what, "check");
	char *end = "";
	uint64_t n = is_child || run || check ? strtoull(argv[2], &end, 10) : 0, sum = 0;

	if (is_child)
		return number(n);
	if (!n || *end) {
		fprintf(stderr, "usage: fork run|check CHILDREN ANSWER\n");
		return 2;
	}
	for (uint64_t i = 0; i < n; i++)
		sum += run ? child(argv[0], i) : number(i);

	FILE *file = fopen(argv[3], run ? "w" : "r");
	unsigned long long got;

	if (!file)
		fail(argv[3], strerror(errno));
	if (run) {
		fprintf(file, "%llu\n", (unsigned long long)sum);
		if (ferror(file) || fclose(file))
			fail(argv[3], "cannot be written");
	} else if (fscanf(file, "%llu", &got) != 1 || got != sum) {
		fprintf(stderr, "wrong answer: must be %llu\n", (unsigned long long)sum);
		return 1;
	}
	return 0;
}
