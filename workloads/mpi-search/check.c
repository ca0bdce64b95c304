/*
 * check MILLIONS ANSWER: checks that the file ANSWER holds "C J", that J is the last integer of 1 … MILLIONS million, and that F(J) = C. It
 * does not search. F multiplies by 16807^5 modulo a prime M, so J is C times the inverse of that.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define M 2147483647ULL

static uint64_t power(uint64_t x, uint64_t n)
{
	uint64_t y = 1;

	for (; n; n >>= 1, x = x * x % M)
		if (n & 1)
			y = y * x % M;
	return y;
}

int main(int argc, char **argv)
{
	unsigned long long c, j;
	FILE *answer;

	if (argc != 3) {
		fprintf(stderr, "usage: check MILLIONS ANSWER\n");
		return 2;
	}
	answer = fopen(argv[2], "r");
	if (!answer || fscanf(answer, "%llu %llu", &c, &j) != 2) {
		fprintf(stderr, "the answer is missing\n");
		return 1;
	}
	uint64_t last = strtoull(argv[1], NULL, 10) * 1000000;
	uint64_t want = c % M * power(power(16807, 5), M - 2) % M; /* x^(M-2) is 1/x (Fermat) */

	if (c >= M || j != want || j != last) {
		fprintf(stderr, "wrong answer: F(%llu) = %llu: must be F(%llu), and F's inverse gives %llu\n",
			j, c, (unsigned long long)last, (unsigned long long)want);
		return 1;
	}
	return 0;
}
