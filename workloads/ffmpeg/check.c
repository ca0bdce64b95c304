/*
 * check CLIPS DIR: checks that DIR has NAME.mp4 for every clip in the list CLIPS ("NAME FRAMES" in each line). Its only
 * video track must be HEVC with FRAMES complete frames. Exit status 0, or a line that says what is wrong.
 *
 * It reads the file's index (ISO/IEC 14496-12): sample descriptions and sample sizes. A test compares it with ffprobe, which
 * reports the same. But ffprobe takes a second to start in an emulated VM, and this program starts at once.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct span {
	const uint8_t *at;
	uint64_t size;
};

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The n-th box of the type in s, without its header. at is NULL if there is none or if the boxes do not fit. */
static struct span box(struct span s, const char *type, int n)
{
	while (s.size >= 8) {
		uint64_t size = be32(s.at), head = 8;

		if (size == 1 && s.size >= 16) {
			size = (uint64_t)be32(s.at + 8) << 32 | be32(s.at + 12);
			head = 16;
		} else if (size == 0) {
			size = s.size;
		}
		if (size < head || size > s.size)
			break;
		if (!memcmp(s.at + 4, type, 4) && n-- == 0)
			return (struct span){s.at + head, size - head};
		s.at += size;
		s.size -= size;
	}
	return (struct span){NULL, 0};
}

/* The number of HEVC samples of a file's only video track, or -1 and why. */
static int64_t frames(struct span file, const char **why)
{
	struct span moov = box(file, "moov", 0), mdat = box(file, "mdat", 0), trak;
	int64_t found = -1;

	*why = "it has no index, or no media data";
	if (!moov.at || !mdat.at)
		return -1;
	*why = "it has no video track";
	for (int i = 0; (trak = box(moov, "trak", i)).at; i++) {
		struct span mdia = box(trak, "mdia", 0), hdlr = box(mdia, "hdlr", 0);
		struct span stbl = box(box(mdia, "minf", 0), "stbl", 0);
		struct span stsd = box(stbl, "stsd", 0), stsz = box(stbl, "stsz", 0);

		if (hdlr.size < 12 || memcmp(hdlr.at + 8, "vide", 4))
			continue;
		*why = "it has more than one video track";
		if (found >= 0)
			return -1;
		*why = "its video is not HEVC";
		if (stsd.size < 16 || (memcmp(stsd.at + 12, "hvc1", 4) && memcmp(stsd.at + 12, "hev1", 4)))
			return -1;
		*why = "its index is damaged";
		if (stsz.size < 12)
			return -1;
		uint32_t each = be32(stsz.at + 4), count = be32(stsz.at + 8);
		uint64_t sum = (uint64_t)each * count;

		if (!each) {
			if ((stsz.size - 12) / 4 < count)
				return -1;
			for (uint32_t k = 0; k < count; k++)
				sum += be32(stsz.at + 12 + 4 * (uint64_t)k);
		}
		*why = "some frames are missing";
		if (sum > mdat.size || (count && !sum))
			return -1;
		found = count;
	}
	return found;
}

int main(int argc, char **argv)
{
	char name[256], path[4096];
	int64_t want;
	int clips = 0;
	FILE *list = argc == 3 ? fopen(argv[1], "r") : NULL;

	if (!list) {
		fprintf(stderr, "usage: check CLIPS DIR\n");
		return 2;
	}
	while (fscanf(list, "%255s %" SCNd64, name, &want) == 2) {
		const char *why = "it is empty";
		struct span file = {NULL, 0};
		struct stat st;
		int64_t got = -1;

		snprintf(path, sizeof path, "%s/%s.mp4", argv[2], name);
		int fd = open(path, O_RDONLY);

		if (fd < 0 || fstat(fd, &st)) {
			fprintf(stderr, "%s: the output is missing\n", name);
			return 1;
		}
		if (st.st_size > 0) {
			file.size = st.st_size;
			file.at = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
			why = "it cannot be read";
			if (file.at != MAP_FAILED)
				got = frames(file, &why);
		}
		if (got < 0) {
			fprintf(stderr, "%s: the output is not a complete HEVC file: %s\n", name, why);
			return 1;
		}
		if (got != want) {
			fprintf(stderr, "%s: the output has %" PRId64 " frames: must be %" PRId64 "\n", name, got, want);
			return 1;
		}
		close(fd);
		clips++;
	}
	if (!clips || !feof(list)) {
		fprintf(stderr, "%s: must be a list of clips and their frames\n", argv[1]);
		return 2;
	}
	return 0;
}
