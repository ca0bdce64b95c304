// Implements records.h with CUPTI's activity records. The library is pinned, and so are the layouts of its records. scripts/cuda compares those below
// with NVIDIA's own header.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "records.h"

#define LIBRARY "libcupti.so.13"

enum { COPY = 1, KERNEL = 10, COMPILATION = 52 };         // kinds of records
enum { COMPILED = 3 };                                     // a record of just-in-time compilation; another value means the cache
enum { END_OF_BUFFER = 12, SIZE = 1 << 20, ALIGNMENT = 8 };

struct kernel_record {
	uint32_t kind;
	uint32_t others[3];
	uint64_t start, end; // in ns
} __attribute__((packed, aligned(8)));

struct copy {
	uint32_t kind;
	uint8_t others[4];
	uint64_t bytes, start, end;
} __attribute__((packed, aligned(8)));

struct compilation {
	uint32_t kind, entry, operation, device;
	uint64_t start, end;
} __attribute__((packed, aligned(8)));

static struct {
	int (*Enable)(int kind);
	int (*RegisterCallbacks)(void (*request)(uint8_t **, size_t *, size_t *), void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t));
	int (*GetNextRecord)(uint8_t *buffer, size_t valid, void **record);
	int (*GetNumDroppedRecords)(void *context, uint32_t stream, size_t *dropped);
	int (*FlushAll)(uint32_t flag);
	int (*GetResultString)(int result, const char **text);
} cupti;

static size_t dropped, timed;

static void must(int result, const char *what)
{
	const char *text = "the profiler gives no description";
	if (result == 0)
		return;
	cupti.GetResultString(result, &text);
	fail("%s: the driver's profiler (CUPTI) says %s (%d): measure without records (driver=cuda_unrecorded)", what, text, result);
}

static void request(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = aligned_alloc(ALIGNMENT, SIZE); // without a buffer the profiler drops records, and counts them
	*size = *buffer ? SIZE : 0;
	*most = 0;
}

// The profiler's own thread calls complete, and so does records_end, but not at the same time.
static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	void *record = NULL;
	size_t lost = 0;
	int result;
	(void)size;
	while ((result = cupti.GetNextRecord(buffer, valid, &record)) == 0)
		switch (*(uint32_t *)record) {
		case KERNEL: { // its times are 0 if the profiler does not know them
			struct kernel_record *k = record;
			if (k->start && k->end >= k->start)
				spent.kernels += (k->end - k->start) / 1e9, timed++;
			break;
		}
		case COPY:
			spent.copying += (((struct copy *)record)->end - ((struct copy *)record)->start) / 1e9;
			break;
		case COMPILATION:
			if (((struct compilation *)record)->operation == COMPILED)
				spent.compiled += (((struct compilation *)record)->end - ((struct compilation *)record)->start) / 1e9;
			break;
		}
	if (result != END_OF_BUFFER)
		must(result, "reading records");
	must(cupti.GetNumDroppedRecords(context, stream, &lost), "counting records that were dropped");
	dropped += lost;
	free(buffer);
}

static void *call(void *library, const char *name)
{
	void *c = dlsym(library, name);
	if (!c)
		fail("%s has no %s: must be the library of CUDA 13", LIBRARY, name);
	return c;
}

void records_begin(const char *folder)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, LIBRARY);
	void *library = dlopen(path, RTLD_NOW);
	if (!library)
		fail("the driver's profiler cannot be loaded: %s", dlerror());
	cupti.Enable = (int (*)(int))call(library, "cuptiActivityEnable");
	cupti.RegisterCallbacks = (int (*)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)))call(library, "cuptiActivityRegisterCallbacks");
	cupti.GetNextRecord = (int (*)(uint8_t *, size_t, void **))call(library, "cuptiActivityGetNextRecord");
	cupti.GetNumDroppedRecords = (int (*)(void *, uint32_t, size_t *))call(library, "cuptiActivityGetNumDroppedRecords");
	cupti.FlushAll = (int (*)(uint32_t))call(library, "cuptiActivityFlushAll");
	cupti.GetResultString = (int (*)(int, const char **))call(library, "cuptiGetResultString");
	spent.recorded = 1, spent.compiled = 0;
	must(cupti.RegisterCallbacks(request, complete), "beginning to record");
	must(cupti.Enable(KERNEL), "recording kernels");
	must(cupti.Enable(COPY), "recording copies");
	must(cupti.Enable(COMPILATION), "recording just-in-time compilation");
}

void records_end(size_t launched)
{
	if (!spent.recorded)
		return;
	enum { INCOMPLETE_TOO = 1 }; // otherwise the profiler would keep back a buffer with one of these
	must(cupti.FlushAll(INCOMPLETE_TOO), "collecting records");
	if (dropped)
		fail("the driver's profiler (CUPTI) dropped %zu records: measure fewer times, or without records (driver=cuda_unrecorded)", dropped);
	if (timed != launched)
		fail("the driver's profiler (CUPTI) recorded the times of %zu kernels, but %zu were launched: measure without records (driver=cuda_unrecorded)", timed, launched);
}
