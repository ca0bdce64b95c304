/*
 * shor N X: factors N with Shor's algorithm on libquantum's simulated register, with the powers of X, and prints the factors. Exit status 1 if it finds
 * none, 2 for wrong arguments. It repeats the declarations of quantum.h, because this compiler does not support that file's complex numbers.
 */
#include <stdio.h>
#include <stdlib.h>

struct quantum_reg {
	int width, size, hashw;
	void *amplitude;
	unsigned long long *state;
	int *hash;
};

struct quantum_reg quantum_new_qureg(unsigned long long, int);
void quantum_hadamard(int, struct quantum_reg *);
void quantum_addscratch(int, struct quantum_reg *);
void quantum_exp_mod_n(int, int, int, int, struct quantum_reg *);
void quantum_qft(int, struct quantum_reg *);
void quantum_cnot(int, int, struct quantum_reg *);
int quantum_bmeasure(int, struct quantum_reg *);
unsigned long long quantum_measure(struct quantum_reg);
void quantum_frac_approx(int *, int *, int);
int quantum_getwidth(int);
int quantum_gcd(int, int);

#define TRIES 64

static int power_mod(long long x, int n, int mod)
{
	long long p = 1;

	while (n--)
		p = p * x % mod;
	return p;
}

int main(int argc, char **argv)
{
	int n = argc == 3 ? atoi(argv[1]) : 0, x = argc == 3 ? atoi(argv[2]) : 0;

	if (n < 15 || n > 9999 || x < 2 || x >= n || quantum_gcd(n, x) > 1) {
		fprintf(stderr, "usage: shor N X, with 15 <= N <= 9999 and X coprime to it\n");
		return 2;
	}
	srand(1);
	srand48(1);
	int width = quantum_getwidth(n * n), work = quantum_getwidth(n);
	struct quantum_reg r = quantum_new_qureg(0, width);

	for (int i = 0; i < width; i++)
		quantum_hadamard(i, &r);
	quantum_addscratch(3 * work + 2, &r);
	quantum_exp_mod_n(n, x, width, work, &r);
	for (int i = 0; i < 3 * work + 2; i++)
		quantum_bmeasure(0, &r);
	quantum_qft(width, &r);
	for (int i = 0; i < width / 2; i++) {
		quantum_cnot(i, width - i - 1, &r);
		quantum_cnot(width - i - 1, i, &r);
		quantum_cnot(i, width - i - 1, &r);
	}
	for (int i = 0; i < TRIES; i++) {
		int c = quantum_measure(r), q = 1 << width;

		if (c <= 0)
			continue;
		quantum_frac_approx(&c, &q, width);
		if (q % 2 == 1 && 2 * q < 1 << width)
			q *= 2;
		if (q % 2)
			continue;
		int half = power_mod(x, q / 2, n);
		int a = quantum_gcd(n, (half + 1) % n), b = quantum_gcd(n, (half + n - 1) % n);
		int f = a > 1 && a < n ? a : b;

		if (f > 1 && f < n && n % f == 0) {
			printf("%d = %d * %d\n", n, f, n / f);
			return 0;
		}
	}
	fprintf(stderr, "no factor of %d in %d measurements\n", n, TRIES);
	return 1;
}
