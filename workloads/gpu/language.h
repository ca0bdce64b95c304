// The language that kernels are written in: what OpenCL C 1.2 and CUDA C++ share, and these names. It is put before each file of kernels. An item is one thread of the
// computation, and groups of items share memory. A kernel has no pointers but those to buffers.
#ifdef __CUDACC__
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define SHARED __shared__
#define BARRIER __syncthreads() // no item of the group goes on before all are here
#define ITEM_X ((int)threadIdx.x)
#define ITEM_Y ((int)threadIdx.y)
#define GROUP_X ((int)blockIdx.x)
#define GROUP_Y ((int)blockIdx.y)
#define WIDTH_X ((int)blockDim.x)
#define WIDTH_Y ((int)blockDim.y)
#else
#define KERNEL __kernel void
#define GLOBAL __global
#define SHARED __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define ITEM_X ((int)get_local_id(0)) // the item's place in its group
#define ITEM_Y ((int)get_local_id(1))
#define GROUP_X ((int)get_group_id(0)) // the group's among all
#define GROUP_Y ((int)get_group_id(1))
#define WIDTH_X ((int)get_local_size(0)) // items of a group
#define WIDTH_Y ((int)get_local_size(1))
#endif
#define X (GROUP_X * WIDTH_X + ITEM_X) // the item's place among all
#define Y (GROUP_Y * WIDTH_Y + ITEM_Y)
