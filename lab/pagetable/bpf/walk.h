// The walk through a page table of x86-64, for programs in the kernel.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

typedef __u64 u64;
typedef __u32 u32;
typedef __u8 u8;

enum { PAGE = 4096, PRESENT = 1, ACCESSED = 1 << 5, LARGE = 1 << 7, PROT_NONE = 1 << 8 };
#define FRAME 0x000ffffffffff000ul

// walk returns the entry that maps an address, or the first entry on the way to it that is not present. base is where the kernel maps all of
// physical memory, and depth the number of levels. size is the number of pages that the entry maps, or would map: 1, 512, …
static __always_inline u64 walk(u64 *pgd, u64 base, u32 depth, u64 address, u32 *size)
{
	u64 table = (u64)pgd, entry = 0;
	u32 shift = depth == 5 ? 48 : 39;

	*size = 0;
	for (int i = 0; i < 5; i++) {
		u64 at = table + ((address >> (shift & 63)) & 511) * 8;
		if (bpf_probe_read_kernel(&entry, 8, (void *)at))
			return 0;
		if (shift == 12 || !(entry & PRESENT) || (shift < 39 && entry & LARGE)) {
			*size = 1u << (shift > 43 ? 31 : (shift - 12) & 31);
			return entry;
		}
		table = base + (entry & FRAME);
		shift -= 9;
	}
	return 0;
}
