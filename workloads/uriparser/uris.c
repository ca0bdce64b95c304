/*
 * uris make MEGABYTES FILE: writes MEGABYTES MiB of URIs, one in a line, in pages of 4096 bytes. No line crosses a page, and empty lines fill
 * the rest of a page.
 * uris check FORM MEGABYTES ANSWER: checks that ANSWER holds the fold of the tokens of these URIs. It knows the tokens without parsing.
 * FORM dense means all lines, sparse the lines that lie wholly in the first 20 % of each page.
 *
 * A fold of tokens is x = 33*x + byte over each token's bytes and a zero after it (mod 2^64), beginning with 42.
 *
 * Exit status: 0, 1 for a failure or a wrong answer, 2 for wrong arguments. One line says what failed.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A 6364136223846793005ULL
#define C 1442695040888963407ULL
#define PAGE 4096
#define SPARSE (PAGE / 5)
#define MOST 200 /* bytes of a line */

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

/* A generated URI. Its tokens follow it, each with a zero after it. */
struct uri {
	char line[MOST], tokens[MOST];
	size_t length, of_tokens;
};

static void piece(struct uri *u, const char *before, const char *token)
{
	int n = snprintf(u->line + u->length, MOST - u->length, "%s%s", before, token);

	u->length += n;
	n = snprintf(u->tokens + u->of_tokens, MOST - u->of_tokens, "%s", token);
	u->of_tokens += n + 1;
	if (u->length >= MOST || u->of_tokens >= MOST)
		fail("a URI", "is too long");
}

/* URI n: scheme, host, port, one to four segments, and perhaps a query and a fragment. */
static void compose(uint64_t n, struct uri *u)
{
	static const char *const schemes[] = {"http", "https", "ftp", "coap"};
	uint64_t x = A * n + C;
	char text[40];

	x ^= x >> 29;
	u->length = u->of_tokens = 0;
	piece(u, "", schemes[x >> 8 & 3]);
	snprintf(text, sizeof text, "h%llx.example.org", (unsigned long long)(x >> 44));
	piece(u, "://", text);
	snprintf(text, sizeof text, "%u", (unsigned)(1024 + (x >> 16 & 0xffff) % 60000));
	piece(u, ":", text);
	for (uint64_t i = 0; i <= (x >> 10 & 3); i++) {
		snprintf(text, sizeof text, "s%llx", (unsigned long long)(x >> (12 + 4 * i) & 0xfffff));
		piece(u, "/", text);
	}
	if (x >> 33 & 1) {
		snprintf(text, sizeof text, "key=%llu&page=%u", (unsigned long long)n, (unsigned)(x >> 34 & 0xff));
		piece(u, "?", text);
	}
	if (x >> 42 & 1) {
		snprintf(text, sizeof text, "part%u", (unsigned)(x >> 20 & 0xff));
		piece(u, "#", text);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *form = argc > 2 ? argv[2] : "";
	int making = argc == 4 && !strcmp(what, "make"), sparse = !strcmp(form, "sparse");
	int check = argc == 5 && !strcmp(what, "check") && (sparse || !strcmp(form, "dense"));
	char *end = "", page[PAGE];
	uint64_t megabytes = making || check ? strtoull(argv[argc - 2], &end, 10) : 0, n = 0, fold = 42;

	if (!megabytes || *end) {
		fprintf(stderr, "usage: uris make MEGABYTES FILE | check dense|sparse MEGABYTES ANSWER\n");
		return 2;
	}
	const char *path = argv[argc - 1];
	FILE *file = fopen(path, making ? "w" : "r");
	struct uri u;
	unsigned long long got;

	if (!file)
		fail(path, strerror(errno));
	compose(n, &u);
	for (uint64_t p = 0; p < megabytes * ((1 << 20) / PAGE); p++) {
		size_t used = 0;

		memset(page, '\n', sizeof page);
		while (used + u.length + 1 <= PAGE) {
			memcpy(page + used, u.line, u.length);
			used += u.length + 1;
			if (!sparse || used <= SPARSE)
				for (size_t i = 0; i < u.of_tokens; i++)
					fold = 33 * fold + (unsigned char)u.tokens[i];
			compose(++n, &u);
		}
		if (making && fwrite(page, sizeof page, 1, file) != 1)
			fail(path, strerror(errno));
	}
	if (check && (fscanf(file, "%llu", &got) != 1 || got != fold)) {
		fprintf(stderr, "wrong answer: must be %llu\n", (unsigned long long)fold);
		return 1;
	}
	if (fclose(file))
		fail(path, strerror(errno));
	return 0;
}
