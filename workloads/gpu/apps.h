// The applications: each has the device compute, reads the results, and afterwards computes the same on the CPU in a way of its own, in double precision.
#pragma once

// app is an application of a size. begin makes its input, without the device; run has the device do all of it so many times; check ends the program where a result is
// not right, and says which.
struct app {
	const char *name;
	const char *kernels; // the file of its kernels
	int small, usual; // sizes as Rodinia, Parboil or SHOC have them, or LeNet's batch
	void (*begin)(int size);
	void (*run)(int times);
	void (*check)(void);
	// figure is one that the application has besides those of all, or NULL: bandwidth in GB/s, arithmetic in 10^9 operations a second, launch_latency in s. value works it
	// out afterwards. Where that is no number above 0, there is none: by the
	// device's own times, say, that nobody recorded.
	const char *figure;
	double (*value)(int times);
};
extern const struct app lud, stencil, particles, inference, training;
extern const struct app bus_down, bus_up, device_memory, peak_flops, launch_latency;
extern const struct app fft, gemm, md, reduction, scan, sort, spmv, triad;

// repeated is called whenever an application has been run once more, its results back: how long each time took is known by that. The levels do not call it.
void repeated(void);
// random_number is one of 0 to 1, the same in each run.
float random_number(void);
// near ends the program where got is further from want than the share of the greatest of what there is to compare.
void near(const char *what, int at, double got, double want, double most, double share);
