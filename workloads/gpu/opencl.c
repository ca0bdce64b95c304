// Implements device.h with OpenCL 1.2. The loader is ocl-icd, and the driver is the guest's.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

struct buffer {
	cl_mem memory; // first: a kernel's argument is a pointer to it
};

static cl_context context;
static cl_command_queue queue;
static cl_program program;

// Kernels whose times the program has not read from the device yet.
enum { MOST = 4096 };
static cl_event pending[MOST];
static int waits;

static void must(cl_int err, const char *what)
{
	switch (err) {
	case CL_SUCCESS:
		return;
	case CL_MEM_OBJECT_ALLOCATION_FAILURE:
	case CL_OUT_OF_RESOURCES:
	case CL_INVALID_BUFFER_SIZE:
		fail("%s: the device has too little memory or other resources (OpenCL error %d): choose a smaller size", what, err);
	case CL_OUT_OF_HOST_MEMORY:
		fail("%s: the driver got no memory from the system (OpenCL error %d): choose a smaller size, or an instance with more memory", what, err);
	case CL_DEVICE_NOT_AVAILABLE:
		fail("%s: the device is gone (OpenCL error %d): check whether another program has it, or reset it", what, err);
	}
	fail("%s: OpenCL error %d", what, err);
}

// device_named finds the device of the driver whose name has this beginning.
static cl_device_id device_named(const char *driver)
{
	cl_platform_id all[16];
	cl_uint n = 0;
	cl_int err = clGetPlatformIDs(16, all, &n);
	if (err != CL_SUCCESS || n == 0)
		fail("no OpenCL driver is installed (the loader answers %d): the image needs one, such as the package pocl-opencl-icd", err);
	char names[1024] = "";
	for (cl_uint i = 0; i < n && i < 16; i++) {
		char name[128] = "";
		cl_device_id device;
		must(clGetPlatformInfo(all[i], CL_PLATFORM_NAME, sizeof name - 1, name, NULL), "the driver's name");
		snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", name);
		int cpu = strncmp(name, "Portable Computing Language", 27) == 0;
		if (cpu != (strcmp(driver, "pocl") == 0))
			continue;
		err = clGetDeviceIDs(all[i], cpu ? CL_DEVICE_TYPE_CPU : CL_DEVICE_TYPE_GPU, 1, &device, NULL);
		if (err == CL_SUCCESS)
			return device;
		fail("the OpenCL driver %s has no device (error %d): is the device in the guest, and its kernel driver loaded?", name, err);
	}
	fail("no OpenCL driver for %s: the drivers are %s", strcmp(driver, "pocl") == 0 ? "the CPU (pocl)" : "a GPU", names);
}

void device_open(const char *driver, int cores, const char *folder, const char *kernels_of)
{
	char text[16], name[64];
	snprintf(name, sizeof name, "%s.cl", kernels_of);
	const char *source[] = {contents(folder, "language.h"), contents(folder, name)};
	snprintf(text, sizeof text, "%d", cores);
	// pocl starts a thread for each of the system's CPUs, even if its process may use fewer.
	if (setenv("POCL_CPU_MAX_CU_COUNT", text, 1) || setenv("POCL_MAX_PTHREAD_COUNT", text, 1))
		fail("setenv: no memory");
	cl_int err;
	double start = now();
	cl_device_id device = device_named(driver);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	must(err, "making a context");
	queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &err);
	must(err, "making a queue that keeps times");
	spent.recorded = 1;
	double opened = now();
	spent.opening = opened - start;
	program = clCreateProgramWithSource(context, 2, source, NULL, &err);
	must(err, "reading the kernels");
	if ((err = clBuildProgram(program, 1, &device, "-cl-std=CL1.2", NULL, NULL)) != CL_SUCCESS) {
		static char log[512];
		clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
		for (char *c = log; *c; c++)
			if (*c == '\n')
				*c = ' ';
		fail("the driver does not compile the kernels (OpenCL error %d): %s", err, *log ? log : "it gives no reason");
	}
	spent.compilation = now() - opened;
}

buffer device_buffer(size_t bytes)
{
	cl_int err;
	buffer b = memory(sizeof *b);
	double start = now();
	b->memory = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &err);
	spent.allocation += now() - start;
	must(err, "allocating the device's memory");
	spent.memory += bytes;
	return b;
}

static double lasted(cl_event e)
{
	cl_ulong from, to;
	must(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_START, sizeof from, &from, NULL), "asking when a command began");
	must(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof to, &to, NULL), "asking when a command ended");
	must(clReleaseEvent(e), "releasing a command");
	return (to - from) / 1e9;
}

void device_write(buffer to, const void *from, size_t bytes)
{
	cl_event e;
	double start = now();
	must(clEnqueueWriteBuffer(queue, to->memory, CL_TRUE, 0, bytes, from, 0, NULL, &e), "copying to the device");
	spent.copies += now() - start;
	spent.copying += lasted(e);
}

void device_read(void *to, buffer from, size_t bytes)
{
	device_finish(); // otherwise the copy would wait for the kernels
	cl_event e;
	double start = now();
	must(clEnqueueReadBuffer(queue, from->memory, CL_TRUE, 0, bytes, to, 0, NULL, &e), "copying from the device");
	spent.copies += now() - start;
	spent.copying += lasted(e);
}

static cl_kernel named(const char *name)
{
	cl_int err;
	struct kernel *k = kernel_named(name);
	if (!k->function) {
		k->function = clCreateKernel(program, name, &err);
		must(err, name);
	}
	return k->function;
}

void device_launch(const char *name, size_t width, size_t height, size_t group, size_t groups, int n, const struct arg *args)
{
	static int launched;
	if (waits == MOST)
		device_finish();
	double start = now();
	cl_kernel k = named(name);
	for (int i = 0; i < n; i++) {
		const void *value = args[i].value;
		if (args[i].size == sizeof(buffer))
			value = &(*(buffer *)value)->memory;
		must(clSetKernelArg(k, i, args[i].size == sizeof(buffer) ? sizeof(cl_mem) : args[i].size, value), name);
	}
	size_t all[2] = {(width + group - 1) / group * group, (height + groups - 1) / groups * groups}, some[2] = {group, groups};
	must(clEnqueueNDRangeKernel(queue, k, 2, NULL, all, some, 0, NULL, &pending[waits++]), name);
	spent.launches += now() - start;
	if (!launched++) {
		device_finish();
		spent.first = now() - start;
	}
}

void device_finish(void)
{
	double start = now();
	must(clFinish(queue), "waiting for the device");
	spent.waiting += now() - start;
	for (int i = 0; i < waits; i++) {
		cl_int status;
		must(clGetEventInfo(pending[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL), "asking how a kernel ended");
		must(status, "a kernel");
		spent.kernels += lasted(pending[i]);
	}
	waits = 0;
}

void device_watch(void) {}

struct condition device_condition(void)
{
	return (struct condition){-1, -1, -1, -1, -1}; // OpenCL does not report it
}

void device_close(void)
{
	for (struct kernel *k = kernels; k->name; k++)
		clReleaseKernel(k->function);
	clReleaseProgram(program);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
}
