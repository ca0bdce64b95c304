/* spin N: N thousand dependent multiplications, so that N one per cent larger costs one per cent more. */
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned long n = argc == 2 ? strtoul(argv[1], NULL, 10) * 1000 : 0;
	volatile unsigned long kept;
	unsigned long x = 1;

	if (n == 0)
		return 2;
	while (n--)
		x = 6364136223846793005UL * x + 1442695040888963407UL;
	kept = x;
	(void)kept;
	return 0;
}
