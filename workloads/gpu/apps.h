// The applications. Each computes on the device and reads the results. It then computes the same on the CPU in another way, in double precision.
#pragma once

// app is an application of a size. begin makes its input, without the device. run lets the device compute it a number of times. check ends the program
// if a result is wrong, and says which.
struct app {
	const char *name;
	const char *kernels; // the file with its kernels: what its driver compiles is of this application
	int small, usual; // sizes from Rodinia, Parboil or SHOC, or LeNet's batch
	void (*begin)(int size);
	void (*run)(int times);
	void (*check)(void);
	// figure is the application's own figure in addition to the common ones, or NULL: bandwidth in GB/s, arithmetic in 10^9 operations a second, launch_latency
	// in s. value computes it afterwards. The figure is missing if the value is not above 0, for example if the device's own times were not recorded.
	const char *figure;
	double (*value)(int times);
};
extern const struct app lud, stencil, particles, inference, training;
extern const struct app bus_down, bus_up, device_memory, peak_flops, launch_latency;
extern const struct app fft, gemm, md, reduction, scan, sort, spmv, triad;

// An application calls repeated after each run, once its results are back, to record the time of each run. The levels do not call it.
void repeated(void);
// random_number returns a number from 0 to 1. The sequence is the same in each run.
float random_number(void);
// near ends the program if got differs from want by more than this share of the greatest value.
void near(const char *what, int at, double got, double want, double most, double share);
