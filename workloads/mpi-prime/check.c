/* check ANSWER: checks that the file ANSWER holds "65536 COUNT" and that the sieve of Eratosthenes finds the same count. */
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
		fprintf(stderr, "the answer is missing\n");
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
		fprintf(stderr, "wrong answer: %ld primes up to %ld: must be %ld up to %d\n", count, limit, want, LIMIT);
		return 1;
	}
	return 0;
}
