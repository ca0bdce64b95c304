/* spin N [MORE]: N thousand dependent multiplications, so that N one per cent larger costs one per cent more. In a Docker container MORE
   thousand of them in addition: a slowdown of known size. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) * 1000 : 0;
	volatile unsigned long kept;
	unsigned long x = 1;

	if (n == 0)
		return 2;
	if (argc > 2 && access("/.dockerenv", F_OK) == 0)
		n += strtoul(argv[2], NULL, 10) * 1000;
	while (n--)
		x = 6364136223846793005UL * x + 1442695040888963407UL;
	kept = x;
	(void)kept;
	return 0;
}
