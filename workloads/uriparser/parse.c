/*
 * parse FORM ROUNDS FILE ANSWER: maps FILE, read-only and shared. The library uriparser splits each URI in it, one in a line, into
 * its tokens: scheme, host, port, segments of the path, query, fragment. No line crosses a page of 4096 bytes. FORM dense parses
 * every line, sparse the lines that lie wholly in the first 20 % of each page. It repeats this ROUNDS times over one mapping. Each round
 * folds the tokens from the start, as uris.c says. It writes the last fold to ANSWER.
 *
 * Exit status: 0, 1 for a failure, 2 for wrong arguments. One line says what failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uriparser/Uri.h>

#define PAGE 4096

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static uint64_t token(uint64_t fold, UriTextRangeA t)
{
	if (!t.first) /* the URI does not have this part */
		return fold;
	for (const char *c = t.first; c < t.afterLast; c++)
		fold = 33 * fold + (unsigned char)*c;
	return 33 * fold;
}

static uint64_t split(uint64_t fold, const char *from, const char *to)
{
	UriUriA u;
	const char *where;

	if (uriParseSingleUriExA(&u, from, to, &where) != URI_SUCCESS)
		fail("a URI", "the library cannot parse it");
	fold = token(fold, u.scheme);
	fold = token(fold, u.hostText);
	fold = token(fold, u.portText);
	for (UriPathSegmentA *s = u.pathHead; s; s = s->next)
		fold = token(fold, s->text);
	fold = token(fold, u.query);
	fold = token(fold, u.fragment);
	uriFreeUriMembersA(&u);
	return fold;
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "";
	int sparse = !strcmp(form, "sparse");
	char *end = "";
	uint64_t rounds = argc == 5 && (sparse || !strcmp(form, "dense")) ? strtoull(argv[2], &end, 10) : 0, fold = 0;

	if (!rounds || *end) {
		fprintf(stderr, "usage: parse dense|sparse ROUNDS FILE ANSWER\n");
		return 2;
	}
	int fd = open(argv[3], O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

	if (size < 0)
		fail(argv[3], strerror(errno));
	if (!size || size % PAGE)
		fail(argv[3], "must have pages of 4096 bytes");
	const char *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (data == MAP_FAILED)
		fail(argv[3], strerror(errno));
	while (rounds--) {
		fold = 42;
		for (const char *page = data; page < data + size; page += PAGE) {
			const char *last = page + (sparse ? PAGE / 5 : PAGE), *line = page, *to;

			for (; line < last && *line != '\n' && (to = memchr(line, '\n', last - line)); line = to + 1)
				fold = split(fold, line, to);
		}
	}
	FILE *out = fopen(argv[4], "w");

	if (!out)
		fail(argv[4], strerror(errno));
	fprintf(out, "%llu\n", (unsigned long long)fold);
	if (ferror(out) || fclose(out))
		fail(argv[4], "cannot be written");
	return 0;
}
