// Reads a piece of each of many frames of the host's memory, and returns a hash of each piece; or reads a whole frame. `make generate` compiles
// it. It reads no structure of the kernel. A frame that cannot be read gives 0.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

typedef __u64 u64;
typedef __u32 u32;

// The same as on the Go side.
enum { BLOCK = 256, AT = 1024, PIECE = 64, WORDS = PIECE / 8 };
#define FACTOR 0x9fb21c651e98df25ul

struct block {
	u64 direct; // where the kernel maps all of physical memory
	u64 seed;
	u64 n;
	u64 of[BLOCK]; // numbers of frames, and then their pieces' hashes
};

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct block); } blocks SEC(".maps");

static long hash(u64 i, struct block **of)
{
	struct block *b = *of;
	u64 words[WORDS], h;

	if (i >= BLOCK)
		return 1;
	if (bpf_probe_read_kernel(words, PIECE, (void *)(b->direct + b->of[i] * 4096 + AT))) {
		b->of[i] = 0;
		return 0;
	}
	h = b->seed;
	for (int w = 0; w < WORDS; w++) {
		h = (h ^ words[w]) * FACTOR;
		h ^= h >> 32;
	}
	b->of[i] = h ? h : 1;
	return 0;
}

// pieces processes one block.
SEC("syscall") int pieces(u32 *which)
{
	u32 k = *which;
	struct block *b = bpf_map_lookup_elem(&blocks, &k);

	if (!b)
		return 1;
	bpf_loop(b->n < BLOCK ? b->n : BLOCK, hash, &b, 0);
	return 0;
}

// A whole frame, for pages that no process has an address for.
struct whole {
	u64 direct;
	u64 frame;
	u64 read; // 1: the bytes are the frame's
	unsigned char bytes[4096];
};

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct whole); } wholes SEC(".maps");

// whole reads one frame.
SEC("syscall") int whole(u32 *which)
{
	u32 k = *which;
	struct whole *w = bpf_map_lookup_elem(&wholes, &k);

	if (!w)
		return 1;
	w->read = !bpf_probe_read_kernel(w->bytes, sizeof w->bytes, (void *)(w->direct + w->frame * 4096));
	return 0;
}

struct place { u64 task; };

// place returns the address of a structure of the kernel, which lies in the map of all physical memory.
SEC("syscall") int place(struct place *p)
{
	p->task = bpf_get_current_task();
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
