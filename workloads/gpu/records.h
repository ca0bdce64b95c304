// What the device did and when, as NVIDIA's profiler (CUPTI) records it. The times of kernels, copies and just-in-time compilation go into spent.
#pragma once
#include <stddef.h>

// records_begin starts recording. Call it before any call of the driver. folder has the profiler's library.
void records_begin(const char *folder);
// records_end adds the recorded times to spent, and checks the number of kernels. It does nothing if recording did not begin.
void records_end(size_t kernels);
