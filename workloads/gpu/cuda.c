// Implements device.h with NVIDIA's driver, libcuda.so.1. The driver comes with the device, so the image has nothing of CUDA. The program calls the
// same functions as CUDA's runtime does: cuMemAlloc for cudaMalloc, cuMemcpy for cudaMemcpy, and a module for the kernels in a program. NVIDIA's
// compiler builds the kernels beforehand. The driver's name selects the build to load: device (machine code for the device's architecture), ptx (code
// that the driver compiles just in time), or many (both, for many architectures). If ",records" follows, the driver's profiler (CUPTI) records
// what the device did and when; see records.h.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "records.h"

struct buffer {
	uint64_t memory; // first: a kernel's argument is a pointer to it
};

// The driver's calls that the program needs, with the names in its library, which may end in _v2. Every driver of the last ten years has
// all except the optional ones.
#define CALLS(call) \
	call(Init, "cuInit", (unsigned flags)) \
	call(DriverGetVersion, "cuDriverGetVersion", (int *version)) \
	call(GetErrorString, "cuGetErrorString", (int err, const char **text)) \
	call(DeviceGetCount, "cuDeviceGetCount", (int *n)) \
	call(DeviceGet, "cuDeviceGet", (int *device, int at)) \
	call(DeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, int device)) \
	call(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *id, int bytes, int device)) \
	call(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **context, int device)) \
	call(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int device)) \
	call(CtxSetCurrent, "cuCtxSetCurrent", (void *context)) \
	call(CtxSynchronize, "cuCtxSynchronize", (void)) \
	call(ModuleLoadData, "cuModuleLoadData", (void **module, const void *image)) \
	call(ModuleGetFunction, "cuModuleGetFunction", (void **function, void *module, const char *name)) \
	call(MemAlloc, "cuMemAlloc_v2", (uint64_t *memory, size_t bytes)) \
	call(MemcpyHtoD, "cuMemcpyHtoD_v2", (uint64_t to, const void *from, size_t bytes)) \
	call(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *to, uint64_t from, size_t bytes)) \
	call(LaunchKernel, "cuLaunchKernel", (void *function, unsigned groups_x, unsigned groups_y, unsigned groups_z, unsigned width_x, unsigned width_y, unsigned width_z, unsigned shared, void *stream, void **args, void **extra))
#define DECLARE(name, symbol, args) int (*name) args;
static struct {
	CALLS(DECLARE)
	int (*FuncLoad)(void *function); // optional, in drivers since 12.4: loads a kernel that would otherwise be loaded on first use
} cu;

enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };
enum { ARGS = 16 };
#define MADE_BY "13.5" // the version of CUDA that built the kernels, in scripts/cuda

static int device, version;
static void *module;
static const char *build = "device";
static size_t launched; // kernels

static void must(int err, const char *what)
{
	const char *text = "the driver gives no description";
	if (err == 0)
		return;
	if (cu.GetErrorString)
		cu.GetErrorString(err, &text);
	switch (err) {
	case 2: // CUDA_ERROR_OUT_OF_MEMORY
		fail("%s: the device has too little memory: choose a smaller size, or check which other programs use the device", what);
	case 46: // CUDA_ERROR_DEVICE_UNAVAILABLE
		fail("%s: another program has the device exclusively, or the device is unreachable (CUDA error %d, %s)", what, err, text);
	case 100: // CUDA_ERROR_NO_DEVICE
	case 101: // CUDA_ERROR_INVALID_DEVICE
		fail("%s: NVIDIA's driver found no device: give the guest one (devices:)", what);
	case 200: // CUDA_ERROR_INVALID_IMAGE
	case 209: // CUDA_ERROR_NO_BINARY_FOR_GPU
	case 218: // CUDA_ERROR_INVALID_PTX
	case 222: // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
		fail("%s: the driver (CUDA %d.%d) cannot run the build %s, made by CUDA %s (CUDA error %d, %s): choose another build, or a newer driver", what, version / 1000, version % 1000 / 10, build, MADE_BY, err, text);
	case 221: // CUDA_ERROR_JIT_COMPILER_NOT_FOUND
		fail("%s: the driver's compiler (libnvidia-ptxjitcompiler.so.1) is not in the guest: the device's description must bring it", what);
	case 214: // CUDA_ERROR_ECC_UNCORRECTABLE
	case 714: // CUDA_ERROR_HARDWARE_STACK_ERROR
		fail("%s: the device failed (CUDA error %d, %s): it may need a reset", what, err, text);
	case 700: // CUDA_ERROR_ILLEGAL_ADDRESS
	case 702: // CUDA_ERROR_LAUNCH_TIMEOUT
	case 719: // CUDA_ERROR_LAUNCH_FAILED
		fail("%s: a kernel failed (CUDA error %d, %s)", what, err, text);
	case 803: // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
		fail("%s: the driver's library and the kernel's driver have different versions (CUDA error %d): write the device's description again", what, err);
	}
	fail("%s: CUDA error %d, %s", what, err, text);
}

// load_driver finds the driver's calls in its library.
static void load_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!driver)
		fail("NVIDIA's driver is missing (%s): use a host that has it, and give the guest a device (devices:)", dlerror());
#define FIND(name, symbol, args) \
	if (!(cu.name = (int(*) args)dlsym(driver, symbol))) \
		fail("libcuda.so.1 is not a usable driver: it has no %s", symbol);
	CALLS(FIND)
	cu.FuncLoad = (int (*)(void *))dlsym(driver, "cuFuncLoad");
}

// built is the file of kernels to load. Machine code runs on its own architecture and on later ones with the same major number.
static char *built(const char *folder, const char *kernels_of)
{
	static const int architectures[] = {75, 80, 86, 89, 90, 100, 120}; // as in scripts/cuda
	char name[64];
	if (strcmp(build, "device")) {
		snprintf(name, sizeof name, strcmp(build, "ptx") ? "%s.%s.fatbin" : "%s.%s", kernels_of, build);
		return contents(folder, name);
	}
	int major, minor, best = 0;
	must(cu.DeviceGetAttribute(&major, ATTRIBUTE_MAJOR, device), "asking the device's architecture");
	must(cu.DeviceGetAttribute(&minor, ATTRIBUTE_MINOR, device), "asking the device's architecture");
	for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
		if (architectures[i] / 10 == major && architectures[i] % 10 <= minor)
			best = architectures[i];
	if (major * 10 + minor < architectures[0])
		fail("the device has architecture %d.%d, but the kernels need 7.5 or newer: use OpenCL (driver=gpu)", major, minor);
	if (!best)
		fail("no kernels were built for the device's architecture %d.%d: choose the build ptx, which the driver compiles for it", major, minor);
	snprintf(name, sizeof name, "%s.sm_%d.fatbin", kernels_of, best);
	return contents(folder, name);
}

void device_open(const char *driver, int cores, const char *folder, const char *kernels_of)
{
	int n = 0, records = 0;
	void *context;
	(void)cores;
	char *chosen = memory(strlen(driver) + 1), *comma;
	strcpy(chosen, driver);
	if ((comma = strchr(chosen, ','))) {
		*comma = 0;
		if (strcmp(comma + 1, "records"))
			fail("%s: must be device, ptx or many, optionally followed by a comma and records", driver);
		records = 1;
	}
	if (strcmp(chosen, "device") && strcmp(chosen, "ptx") && strcmp(chosen, "many"))
		fail("%s: build must be device, ptx or many", driver);
	build = chosen;

	double start = now();
	load_driver();
	spent.opening = now() - start;
	if (records)
		records_begin(folder); // before the driver starts
	start = now();
	must(cu.Init(0), "starting the driver");
	must(cu.DriverGetVersion(&version), "asking the driver's version");
	must(cu.DeviceGetCount(&n), "counting devices");
	if (n < 1)
		must(100, "counting devices");
	must(cu.DeviceGet(&device, 0), "taking the first device");
	must(cu.DevicePrimaryCtxRetain(&context, device), "making a context");
	must(cu.CtxSetCurrent(context), "making a context");
	spent.opening += now() - start;

	char *image = built(folder, kernels_of);
	start = now();
	must(cu.ModuleLoadData(&module, image), "loading the kernels");
	spent.compilation += now() - start;
}

buffer device_buffer(size_t bytes)
{
	buffer b = memory(sizeof *b);
	double start = now();
	int err = cu.MemAlloc(&b->memory, bytes);
	spent.allocation += now() - start;
	must(err, "allocating the device's memory");
	spent.memory += bytes;
	return b;
}

void device_write(buffer to, const void *from, size_t bytes)
{
	double start = now();
	must(cu.MemcpyHtoD(to->memory, from, bytes), "copying to the device");
	spent.copies += now() - start;
}

void device_read(void *to, buffer from, size_t bytes)
{
	device_finish(); // otherwise the copy would wait for the kernels
	double start = now();
	must(cu.MemcpyDtoH(to, from->memory, bytes), "copying from the device");
	spent.copies += now() - start;
}

// named finds a kernel, and makes the driver load or compile it. Otherwise the driver would do this at the first launch.
static void *named(const char *name)
{
	struct kernel *k = kernel_named(name);
	if (!k->function) {
		double start = now();
		must(cu.ModuleGetFunction(&k->function, module, name), name);
		if (cu.FuncLoad)
			must(cu.FuncLoad(k->function), name);
		spent.compilation += now() - start;
	}
	return k->function;
}

void device_launch(const char *name, size_t width, size_t height, size_t group, size_t groups, int n, const struct arg *args)
{
	void *values[ARGS], *kernel = named(name);
	if (n > ARGS)
		fail("%s: must have at most %d arguments", name, ARGS);
	for (int i = 0; i < n; i++)
		values[i] = args[i].size == sizeof(buffer) ? &(*(buffer *)args[i].value)->memory : (void *)args[i].value;
	double start = now();
	must(cu.LaunchKernel(kernel, (width + group - 1) / group, (height + groups - 1) / groups, 1, group, groups, 1, 0, NULL, values, NULL), name);
	spent.launches += now() - start;
	if (!launched++) {
		device_finish();
		spent.first = now() - start;
	}
}

void device_finish(void)
{
	double start = now();
	must(cu.CtxSynchronize(), "waiting for the device");
	spent.waiting += now() - start;
}

// NVIDIA's management library (NVML), which comes with the driver if the device's description brings it.
static void *nvml;

void device_watch(void)
{
	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void) = nvml ? (int (*)(void))dlsym(nvml, "nvmlInit_v2") : NULL;
	if (!init || init())
		nvml = NULL;
}

// Each figure is independent, because not every device reports all.
struct condition device_condition(void)
{
	struct condition c = {-1, -1, -1, -1, -1};
	char bus[32];
	void *handle;
	unsigned n;
	unsigned long long reasons;
	struct { // NVML's layout, version 2
		unsigned pid;
		unsigned long long memory;
		unsigned instance, compute;
	} all[256];
#define NVML(name, ...) ((int (*)(__VA_ARGS__))dlsym(nvml, name))
	int (*find)(const char *, void **), (*clock)(void *, int, unsigned *), (*degrees)(void *, int, unsigned *), (*power)(void *, unsigned *);
	int (*held)(void *, unsigned long long *), (*processes)(void *, unsigned *, void *);
	if (!nvml || cu.DeviceGetPCIBusId(bus, sizeof bus, device) || !(find = NVML("nvmlDeviceGetHandleByPciBusId_v2", const char *, void **)) || find(bus, &handle))
		return c;
	enum { PROCESSORS = 1, OF_THE_CHIP = 0, HELD_DOWN = 0x4 | 0x8 | 0x20 | 0x40 | 0x80 }; // limits of power, and heat, by software and hardware
	if ((held = NVML("nvmlDeviceGetCurrentClocksThrottleReasons", void *, unsigned long long *)) && !held(handle, &reasons))
		c.throttled = (reasons & HELD_DOWN) != 0;
	if ((clock = NVML("nvmlDeviceGetClockInfo", void *, int, unsigned *)) && !clock(handle, PROCESSORS, &n))
		c.clock = n * 1e6;
	if ((power = NVML("nvmlDeviceGetPowerUsage", void *, unsigned *)) && !power(handle, &n))
		c.power = n / 1e3;
	if ((degrees = NVML("nvmlDeviceGetTemperature", void *, int, unsigned *)) && !degrees(handle, OF_THE_CHIP, &n))
		c.temperature = n;
	n = sizeof all / sizeof *all;
	if ((processes = NVML("nvmlDeviceGetComputeRunningProcesses_v3", void *, unsigned *, void *)) && !processes(handle, &n, all))
		c.others = n > 1 ? n - 1 : 0;
	return c;
}

void device_close(void)
{
	records_end(launched);
	must(cu.DevicePrimaryCtxRelease(device), "releasing the device");
}
