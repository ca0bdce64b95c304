// Requests to block devices, from their creation by the thread that asks to their completion.
#include "trace.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct gendisk { int major, first_minor; };
struct request_queue { struct gendisk *disk; };
struct request { struct request_queue *q; u32 cmd_flags, __data_len; };
#pragma clang attribute pop

struct asked { u64 since; u32 role; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct asked);
} inflight SEC(".maps");

struct device { u32 major, minor, op, role; };
struct io { u64 n, bytes, ns, spread[BUCKETS]; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct device);
	__type(value, struct io);
} devices SEC(".maps");

static __always_inline int asks(struct request *rq)
{
	struct seat *a = seat(bpf_get_current_pid_tgid());
	if (!a || !look.open || a->role >= ROLES)
		return 0;
	u64 key = (u64)rq;
	struct asked k = {bpf_ktime_get_ns(), a->role};
	if (bpf_map_update_elem(&inflight, &key, &k, BPF_ANY)) {
		struct sums *s = mine();
		if (s)
			s->lost++;
	}
	return 0;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(block_start, struct request *rq) { return asks(rq); }

// Before Linux 6.5. A request that another thread passes on to the device is not attributed to the thread that asked.
SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_issue, struct request *rq) { return asks(rq); }

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_end, struct request *rq, u8 status, u32 bytes)
{
	u64 key = (u64)rq;
	struct asked *k = bpf_map_lookup_elem(&inflight, &key);
	if (!k)
		return 0;
	u64 ns = bpf_ktime_get_ns() - k->since;
	struct device d = {.op = rq->cmd_flags & 0xff, .role = k->role};
	struct gendisk *disk = rq->q->disk;
	if (disk) {
		d.major = disk->major;
		d.minor = disk->first_minor;
	}
	bpf_map_delete_elem(&inflight, &key);
	struct io *io = bpf_map_lookup_elem(&devices, &d);
	if (!io) {
		static const struct io none;
		bpf_map_update_elem(&devices, &d, &none, BPF_NOEXIST);
		io = bpf_map_lookup_elem(&devices, &d);
		if (!io) {
			struct sums *s = mine();
			if (s)
				s->lost++;
			return 0;
		}
	}
	u32 bucket = log2of(ns);
	__sync_fetch_and_add(&io->n, 1);
	__sync_fetch_and_add(&io->bytes, bytes);
	__sync_fetch_and_add(&io->ns, ns);
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&io->spread[bucket], 1);
	return 0;
}
