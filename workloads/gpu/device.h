// A device that runs kernels, whatever it is programmed by. Every call is timed by CLOCK_MONOTONIC; what fails ends the program with one line that says what.
#pragma once
#include <stddef.h>

// Where the time of a run went, in seconds. The first six are the program's waiting in calls, one after the other; the others are within them.
struct account {
	double opening;     // finding the driver and the device, making a context
	double compilation; // loading kernels, and compiling them for the device just in time
	double allocation;  // of the device's memory
	double copies;      // to the device and back, as the program waits for them
	double launches;    // handing kernels over
	double waiting;     // for kernels to end
	double kernels;     // the device at work on kernels, by its own clock, where that is recorded
	double copying;     // the device at work on copies, by its own clock, where that is recorded
	double compiled;    // the driver at work on compiling kernels, where that is recorded; otherwise below 0
	double first;       // from handing over the first kernel until it has ended, by both
	double memory;      // of the device, in bytes
	double clocks;      // how often the clock was read
	int recorded;       // whether the device's own times were
};
extern struct account spent;

// What state the device is in. What its driver does not say is below 0.
struct condition {
	double clock;       // of its processors, in Hz
	double temperature; // in °C
	double power;       // in W
	double throttled;   // whether heat or a limit of power holds its clock down: 0 or 1
	double others;      // processes that compute on it beside this one, of those that its PID namespace shows
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

// device_open makes the device ready, with the kernels of that name in the folder. driver is which driver, or which build of the kernels, the one that programs the device
// has to choose from; cores are how many of the host's it uses where it computes on those.
void device_open(const char *driver, int cores, const char *folder, const char *kernels);
buffer device_buffer(size_t bytes);
void device_write(buffer to, const void *from, size_t bytes);
void device_read(void *to, buffer from, size_t bytes);
// device_launch has a kernel run over so many items in groups of so many, in two dimensions. The items are rounded up to whole groups.
void device_launch(const char *kernel, size_t width, size_t height, size_t group, size_t groups, int n, const struct arg *args);
#define LAUNCH(kernel, width, height, group, groups, ...) \
	device_launch(kernel, width, height, group, groups, sizeof((struct arg[]){__VA_ARGS__}) / sizeof(struct arg), (struct arg[]){__VA_ARGS__})
void device_finish(void);
// device_watch makes ready what device_condition asks, which is to be called right after the work: an idle device lowers its clock, and is throttled no more.
void device_watch(void);
struct condition device_condition(void);
void device_close(void);

double now(void);
// fail ends the program with one line.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *memory(size_t bytes);
// contents are a file's, with a zero after them. The file is folder/name.
char *contents(const char *folder, const char *name);

// What the driver has for each kernel that was asked for, in their order; the first without a name is behind the last.
enum { KERNELS = 64 };
extern struct kernel {
	const char *name;
	void *function; // NULL until it is put here
} kernels[KERNELS + 1];
// kernel_named is the kernel's entry, a new one where there was none. name has to stay.
struct kernel *kernel_named(const char *name);
