// A device that runs kernels, with any programming interface. CLOCK_MONOTONIC times every call. A failure ends the program with one line that says what failed.
#pragma once
#include <stddef.h>

// Where the time of a run went, in seconds. The first six are times in which the program waits in calls. They do not overlap. The others are within them.
struct account {
	double opening;     // finding the driver and the device, making a context
	double compilation; // loading kernels, and compiling them for the device just in time
	double allocation;  // allocating the device's memory
	double copies;      // to the device and back, as the program waits for them
	double launches;    // launching kernels
	double waiting;     // for kernels to end
	double kernels;     // the device working on kernels, by its own clock, if that is recorded
	double copying;     // the device working on copies, by its own clock, if that is recorded
	double compiled;    // the driver compiling kernels, if that is recorded; otherwise below 0
	double first;       // from handing over the first kernel until it has ended, by both
	double memory;      // of the device, in bytes
	double clocks;      // number of readings of the clock
	int recorded;       // whether the device's own times were recorded
};
extern struct account spent;

// The device's state. Values that its driver does not report are below 0.
struct condition {
	double clock;       // of its processors, in Hz
	double temperature; // in °C
	double power;       // in W
	double throttled;   // whether heat or a power limit lowers its clock: 0 or 1
	double others;      // other processes that compute on it, as far as the PID namespace shows them
};

typedef struct buffer *buffer;

// An argument of a kernel: a buffer, an int or a float.
struct arg {
	size_t size;
	const void *value;
};
#define BUFFER(b) ((struct arg){sizeof(buffer), &(b)})
#define INT(i) ((struct arg){sizeof(int), &(int){i}})
#define FLOAT(f) ((struct arg){sizeof(float), &(float){f}})

// device_open makes the device ready, with the kernels of that name in the folder. driver selects a driver or a build of the kernels. cores is the
// number of the host's cores to use, if the device is the CPU.
void device_open(const char *driver, int cores, const char *folder, const char *kernels);
buffer device_buffer(size_t bytes);
void device_write(buffer to, const void *from, size_t bytes);
void device_read(void *to, buffer from, size_t bytes);
// device_launch runs a kernel over a number of items, in groups, in two dimensions. The number of items is rounded up to whole groups.
void device_launch(const char *kernel, size_t width, size_t height, size_t group, size_t groups, int n, const struct arg *args);
#define LAUNCH(kernel, width, height, group, groups, ...) \
	device_launch(kernel, width, height, group, groups, sizeof((struct arg[]){__VA_ARGS__}) / sizeof(struct arg), (struct arg[]){__VA_ARGS__})
void device_finish(void);
// device_watch prepares device_condition. Call device_condition right after the work, because an idle device lowers its clock and is no longer throttled.
void device_watch(void);
struct condition device_condition(void);
void device_close(void);

double now(void);
// fail ends the program with one line.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *memory(size_t bytes);
// contents returns the bytes of the file folder/name, followed by a zero.
char *contents(const char *folder, const char *name);

// The driver's function for each requested kernel, in order. The first entry without a name follows the last.
enum { KERNELS = 64 };
extern struct kernel {
	const char *name;
	void *function; // NULL until it is set
} kernels[KERNELS + 1];
// kernel_named returns the kernel's entry, and adds it if it is missing. name must stay valid.
struct kernel *kernel_named(const char *name);
