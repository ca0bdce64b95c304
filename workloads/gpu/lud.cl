// The kernels of LU decomposition, in the language of language.h.

// LU decomposition in place, without pivots (Rodinia's lud): blocks of BLOCK rows, from the top left. One item does the block on the diagonal, one each a row or a
// column of the blocks beside and below it, and one each an element of the rest.
#define BLOCK 16

KERNEL lud_diagonal(GLOBAL float *a, int n, int at)
{
	int end = at + BLOCK < n ? at + BLOCK : n;
	if (X || Y)
		return;
	for (int k = at; k < end; k++)
		for (int i = k + 1; i < end; i++) {
			float f = a[i * n + k] /= a[k * n + k];
			for (int j = k + 1; j < end; j++)
				a[i * n + j] -= f * a[k * n + j];
		}
}

KERNEL lud_sides(GLOBAL float *a, int n, int at)
{
	int end = at + BLOCK, i = end + X;
	if (i >= n || Y > 1)
		return;
	if (Y) // a column, right of the diagonal's block
		for (int r = at + 1; r < end; r++)
			for (int k = at; k < r; k++)
				a[r * n + i] -= a[r * n + k] * a[k * n + i];
	else // a row, below it
		for (int c = at; c < end; c++) {
			for (int k = at; k < c; k++)
				a[i * n + c] -= a[i * n + k] * a[k * n + c];
			a[i * n + c] /= a[c * n + c];
		}
}

KERNEL lud_rest(GLOBAL float *a, int n, int at)
{
	int j = at + BLOCK + X, i = at + BLOCK + Y;
	if (i >= n || j >= n)
		return;
	float sum = 0;
	for (int k = at; k < at + BLOCK; k++)
		sum += a[i * n + k] * a[k * n + j];
	a[i * n + j] -= sum;
}
