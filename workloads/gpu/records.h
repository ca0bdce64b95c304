// What the device did when, as NVIDIA's profiler (CUPTI) records it: the times of kernels and copies go into spent, and so do those of compiling just in time.
#pragma once
#include <stddef.h>

// records_begin has the profiler record from now on. It is to be called before the driver is. folder has its library.
void records_begin(const char *folder);
// records_end adds what was recorded to spent, of which so many kernels have to be; where nothing was begun it does nothing.
void records_end(size_t kernels);
