// A stand-in for NVIDIA's driver and its profiler, for tests of the program that calls them: its kernels are the workload's own, compiled for the CPU, one item after the
// other, so it has none with barriers. It shows that the program calls as the driver wants to be called, as far as the driver's documentation says; it says nothing of a GPU.
// What is to fail, and how, is in the environment: FAIL=CALL:ERROR.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

using std::exp;

struct place {
	unsigned x, y;
};
static place threadIdx, blockIdx, blockDim;
#define __CUDACC__
#define __global__
#include "language.h"
#include "lud.cl"
#include "stencil.cl"
#include "particles.cl"
#include "lenet.cl"

namespace {

template <class... A, size_t... I> void with(void (*kernel)(A...), void **args, std::index_sequence<I...>) { kernel(*(A *)args[I]...); }
template <class... A> void with(void (*kernel)(A...), void **args) { with(kernel, args, std::index_sequence_for<A...>()); }

struct entry {
	const char *name;
	void (*call)(void **args);
};
#define ENTRY(name) {#name, [](void **args) { with(name, args); }}
const entry entries[] = {
	ENTRY(lud_diagonal), ENTRY(lud_sides), ENTRY(lud_rest), ENTRY(stencil), ENTRY(particle_move), ENTRY(particle_weigh), ENTRY(particle_choose), ENTRY(conv), ENTRY(pool),
	ENTRY(full), ENTRY(loss), ENTRY(full_back), ENTRY(full_step), ENTRY(pool_back), ENTRY(conv_back), ENTRY(conv_step),
};

uint64_t clock_ns()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// Records: those that are used have their times at the same place.
struct record {
	uint32_t kind, others[3];
	uint64_t start, end;
	uint8_t rest[200];
};
std::vector<record> records;
bool wanted[64], ready, loaded;

void recorded(int kind, uint64_t start)
{
	record r{};
	r.kind = kind, r.start = start, r.end = clock_ns();
	if (kind == 52) // of just-in-time compilation: what the compiler did
		r.others[1] = 3;
	if (kind == 10 && getenv("TIMELESS"))
		r.start = r.end = 0;
	if (wanted[kind])
		records.push_back(r);
}

int failing(const char *call)
{
	const char *fail = getenv("FAIL");
	size_t n = strlen(call);
	return fail && strncmp(fail, call, n) == 0 && fail[n] == ':' ? atoi(fail + n + 1) : 0;
}

} // namespace

#define CALL(name, ...) extern "C" int name(__VA_ARGS__)
#define MAY_FAIL \
	if (int err = failing(__func__)) \
		return err;

CALL(cuInit, unsigned) { MAY_FAIL ready = true; return 0; }
CALL(cuDriverGetVersion, int *v) { *v = 12040; return 0; }
CALL(cuGetErrorString, int, const char **text) { *text = "as the test asked"; return 0; }
CALL(cuDeviceGetCount, int *n) { MAY_FAIL *n = getenv("NO_DEVICE") ? 0 : 1; return ready ? 0 : 3; }
CALL(cuDeviceGet, int *d, int) { *d = 7; return 0; }
CALL(cuDeviceGetAttribute, int *v, int attribute, int d)
{
	const char *is = getenv("ARCHITECTURE");
	int n = is ? atoi(is) : 90;
	*v = attribute == 75 ? n / 10 : attribute == 76 ? n % 10 : -1;
	return d == 7 ? 0 : 101;
}
CALL(cuDevicePrimaryCtxRetain, void **c, int d) { MAY_FAIL *c = &ready; return d == 7 ? 0 : 101; }
CALL(cuDevicePrimaryCtxRelease_v2, int d) { return d == 7 ? 0 : 101; }
CALL(cuCtxSetCurrent, void *c) { return c == &ready ? 0 : 201; }
CALL(cuCtxSynchronize, void) { MAY_FAIL return 0; }
CALL(cuModuleLoadData, void **m, const void *image)
{
	MAY_FAIL
	uint64_t start = clock_ns();
	static const uint8_t magic[] = {0x50, 0xed, 0x55, 0xba}; // of what NVIDIA's compiler packs; the other is text
	*m = &loaded;
	recorded(52, start);
	return memcmp(image, magic, sizeof magic) && !strstr((const char *)image, "\n.version 6.3\n") ? 200 : 0;
}
CALL(cuModuleGetFunction, void **f, void *m, const char *name)
{
	for (const entry &e : entries)
		if (strcmp(e.name, name) == 0) {
			*f = (void *)&e;
			return m == &loaded ? 0 : 400;
		}
	return 500;
}
CALL(cuFuncLoad, void *) { return 0; }
CALL(cuMemAlloc_v2, uint64_t *p, size_t bytes) { MAY_FAIL return (*p = (uint64_t)calloc(1, bytes)) ? 0 : 2; }
CALL(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes) { MAY_FAIL uint64_t start = clock_ns(); memcpy((void *)to, from, bytes); recorded(1, start); return 0; }
CALL(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes) { MAY_FAIL uint64_t start = clock_ns(); memcpy(to, (void *)from, bytes); recorded(1, start); return 0; }
CALL(cuLaunchKernel, void *f, unsigned gx, unsigned gy, unsigned gz, unsigned wx, unsigned wy, unsigned wz, unsigned, void *, void **args, void **)
{
	MAY_FAIL
	uint64_t start = clock_ns();
	if (gz != 1 || wz != 1 || wx * wy > 1024)
		return 1;
	blockDim = {wx, wy};
	for (blockIdx.y = 0; blockIdx.y < gy; blockIdx.y++)
		for (blockIdx.x = 0; blockIdx.x < gx; blockIdx.x++)
			for (threadIdx.y = 0; threadIdx.y < wy; threadIdx.y++)
				for (threadIdx.x = 0; threadIdx.x < wx; threadIdx.x++)
					((const entry *)f)->call(args);
	recorded(10, start);
	return 0;
}

CALL(cuDeviceGetPCIBusId, char *id, int bytes, int d) { snprintf(id, bytes, "0000:3b:00.0"); return d == 7 ? 0 : 101; }

CALL(nvmlInit_v2, void) { MAY_FAIL return 0; }
CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *id, void **d) { *d = &ready; return strcmp(id, "0000:3b:00.0") ? 6 : 0; }
CALL(nvmlDeviceGetClockInfo, void *d, int which, unsigned *mhz) { *mhz = 1980; return d == &ready && which == 1 ? 0 : 2; }
CALL(nvmlDeviceGetTemperature, void *, int, unsigned *degrees) { *degrees = 41; return 0; }
CALL(nvmlDeviceGetPowerUsage, void *, unsigned *milliwatts) { *milliwatts = 120500; return 0; }
CALL(nvmlDeviceGetCurrentClocksThrottleReasons, void *, unsigned long long *reasons) { *reasons = getenv("HOT") ? 0x41 : 0x1; return 0; }
CALL(nvmlDeviceGetComputeRunningProcesses_v3, void *, unsigned *n, void *all)
{
	*n = getenv("SHARED") ? 3 : 1;
	memset(all, 0, *n * 24);
	return 0;
}

typedef void (*request)(uint8_t **, size_t *, size_t *);
typedef void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t);
static request asking;
static complete done;
CALL(cuptiActivityRegisterCallbacks, request a, complete d) { asking = a, done = d; return 0; }
CALL(cuptiActivityEnable, int kind) { MAY_FAIL if (ready) return 1; wanted[kind] = true; return 0; }
CALL(cuptiActivityGetNextRecord, uint8_t *buffer, size_t valid, void **at)
{
	uint8_t *next = *at ? (uint8_t *)*at + sizeof(record) : buffer;
	if (next + sizeof(record) > buffer + valid)
		return 12;
	*at = next;
	return 0;
}
CALL(cuptiActivityGetNumDroppedRecords, void *, uint32_t, size_t *n) { *n = getenv("DROPPED") ? 3 : 0; return 0; }
CALL(cuptiActivityFlushAll, uint32_t)
{
	for (size_t at = 0; at < records.size();) {
		uint8_t *buffer;
		size_t size, most, n;
		asking(&buffer, &size, &most);
		n = size / sizeof(record) < records.size() - at ? size / sizeof(record) : records.size() - at;
		memcpy(buffer, &records[at], n * sizeof(record));
		done(nullptr, 0, buffer, size, n * sizeof(record));
		at += n;
	}
	return 0;
}
CALL(cuptiGetResultString, int, const char **text) { *text = "as the test asked"; return 0; }
