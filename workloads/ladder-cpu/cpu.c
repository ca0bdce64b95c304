/*
 * cpu run MILLIONS ANSWER: runs MILLIONS million steps, each depending on the previous one. A step computes x = a*x + c (mod 2^64), adds x
 * to one of 512 words (4 KiB, in the innermost cache), and computes f = g*f (mod P) in floating point, where every number is whole and
 * below 2^53, and therefore exact. It writes the last x, the sum of the words and the last f to ANSWER. There are no system calls between
 * the first step and the last.
 * cpu check MILLIONS ANSWER: checks these three by repeated squaring, in integers, without a table.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define P 67108859ULL /* the largest prime below 2^26: a product of two numbers below it is below 2^52 */
#define G 48271ULL
#define WORDS 512

struct answer {
	uint64_t x, sum, f;
};

static struct answer steps(uint64_t n)
{
	static uint64_t table[WORDS];
	const double p = P, g = G, inverse = 1.0 / P;
	uint64_t x = 42, sum = 0;
	double f = 1;

	while (n--) {
		x = A * x + C;
		table[x >> 55] += x;
		double product = f * g, quotient = (double)(int64_t)(product * inverse);
		f = product - quotient * p; /* the quotient is at most one too large or too small */
		if (f < 0)
			f += p;
		if (f >= p)
			f -= p;
	}
	for (int i = 0; i < WORDS; i++)
		sum += table[i];
	return (struct answer){x, sum, (uint64_t)f};
}

/* n steps are the map x -> a*x + c, s -> s + p*x + q. Two such maps in succession are again such a map. */
struct map {
	uint64_t a, c, p, q;
};

static struct map then(struct map m, struct map o)
{
	return (struct map){o.a * m.a, o.a * m.c + o.c, m.p + o.p * m.a, m.q + o.p * m.c + o.q};
}

static struct answer jump(uint64_t n)
{
	struct map all = {1, 0, 0, 0}, m = {A, C, A, C};
	uint64_t f = 1, g = G;

	for (; n; n >>= 1) {
		if (n & 1) {
			all = then(all, m);
			f = f * g % P;
		}
		m = then(m, m);
		g = g * g % P;
	}
	return (struct answer){all.a * 42 + all.c, all.p * 42 + all.q, f};
}

int main(int argc, char **argv)
{
	int run = argc == 4 && !strcmp(argv[1], "run"), check = argc == 4 && !strcmp(argv[1], "check");
	char *end = "";
	uint64_t millions = run || check ? strtoull(argv[2], &end, 10) : 0;

	if (!millions || *end) {
		fprintf(stderr, "usage: cpu run|check MILLIONS ANSWER\n");
		return 2;
	}
	struct answer a = run ? steps(millions * 1000000) : jump(millions * 1000000);
	FILE *file = fopen(argv[3], run ? "w" : "r");

	if (!file) {
		perror(argv[3]);
		return 1;
	}
	if (run) {
		fprintf(file, "%llu %llu %llu\n", (unsigned long long)a.x, (unsigned long long)a.sum, (unsigned long long)a.f);
		if (ferror(file) || fclose(file)) {
			perror(argv[3]);
			return 1;
		}
		return 0;
	}
	unsigned long long x, sum, f;

	if (fscanf(file, "%llu %llu %llu", &x, &sum, &f) != 3 || x != a.x || sum != a.sum || f != a.f) {
		fprintf(stderr, "wrong answer: must be %llu %llu %llu\n", (unsigned long long)a.x, (unsigned long long)a.sum, (unsigned long long)a.f);
		return 1;
	}
	return 0;
}
