/* check ANSWER: the file ANSWER holds "65536 COUNT", and the sieve of Eratosthenes counts as many primes. */
#include <stdio.h>

#define LIMIT 65536

static char composite[LIMIT + 1];

int main(int argc, char **argv)
{
	long limit, count, want = 0;
	FILE *answer;

	if (argc != 2) {
		fprintf(stderr, "usage: check ANSWER\n");
		return 2;
	}
	answer = fopen(argv[1], "r");
	if (!answer || fscanf(answer, "%ld %ld", &limit, &count) != 2) {
		fprintf(stderr, "there is no answer\n");
		return 1;
	}
	for (long i = 2; i <= LIMIT; i++) {
		if (composite[i])
			continue;
		want++;
		for (long k = i * i; k <= LIMIT; k += i)
			composite[k] = 1;
	}
	if (limit != LIMIT || count != want) {
		fprintf(stderr, "wrong answer: %ld primes up to %ld, expected %ld up to %d\n", count, limit, want, LIMIT);
		return 1;
	}
	return 0;
}
