/*
 * cpu N: computes N million steps of x = a*x + c (mod 2^64), each depending on the previous one. It then computes the
 * answer by repeated squaring, which takes 64 steps. Exit status 1 if the two differ, 2 for a wrong argument.
 * There are no system calls between the first step and the last.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL

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

int main(int argc, char **argv)
{
	char *end;
	unsigned long long millions = argc == 2 ? strtoull(argv[1], &end, 10) : 0;

	if (!millions || *end) {
		fprintf(stderr, "usage: cpu MILLIONS\n");
		return 2;
	}
	uint64_t n = millions * 1000000ULL;
	uint64_t got = steps(42, n), want = jump(42, n);

	if (got != want) {
		fprintf(stderr, "wrong answer: %llu: must be %llu\n", (unsigned long long)got, (unsigned long long)want);
		return 1;
	}
	printf("%llu\n", (unsigned long long)got);
	return 0;
}
