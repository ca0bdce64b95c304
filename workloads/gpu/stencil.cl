// The kernels of the stencil, in the language of language.h.

// A stencil of seven points in three dimensions (Parboil's stencil): an item is a column of cells.
KERNEL stencil(const GLOBAL float *from, GLOBAL float *to, int nx, int ny, int nz, float middle, float side)
{
	int x = X, y = Y;
	if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
		return;
	int plane = nx * ny;
	for (int z = 1; z < nz - 1; z++) {
		int i = x + nx * y + plane * z;
		to[i] = middle * from[i] + side * (from[i - 1] + from[i + 1] + from[i - nx] + from[i + nx] + from[i - plane] + from[i + plane]);
	}
}
