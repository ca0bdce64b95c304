//go:build linux

package trace

import (
	"fmt"

	"tare/notebook"
)

// The tracer of requests to block devices: how many, how many bytes, and how long they took.
var _ = add(tracer{
	name:     notebook.TracerBlock,
	on:       "the block devices' tracepoints (Linux 5.18 or later with BTF)",
	programs: []string{"block_start", "block_end"},
	older:    []string{"block_issue", "block_end"},
	lacks:    "requests that the kernel's own threads pass on to a device are not seen before Linux 6.5",
	read:     (*Trace).readDevices,
})

// device and blockIO mirror the structs device and io in bpf/block.c.
type device struct{ Major, Minor, Op, Role uint32 }

type blockIO struct {
	N, Bytes, NS uint64
	Spread       [buckets]uint64
}

// Operations of requests (REQ_OP_READ and REQ_OP_WRITE of linux/blk_types.h). Others, such as flushes, are not counted.
const (
	opRead  = 0
	opWrite = 1
)

func (t *Trace) readDevices(p *notebook.Trace) error {
	for _, all := range []string{"reads", "read_bytes", "writes", "written_bytes"} {
		p.Figures[all] = 0 // sums over all devices: a trial without requests has them too
	}
	var d device
	var io blockIO
	each := t.kit.coll.Maps["devices"].Iterate()
	for each.Next(&d, &io) {
		var n, bytes, of string
		switch d.Op {
		case opRead:
			n, bytes, of = "reads", "read_bytes", "read"
		case opWrite:
			n, bytes, of = "writes", "written_bytes", "write"
		default:
			continue
		}
		name, err := kernelFiles.device(fmt.Sprintf("%d:%d", d.Major, d.Minor))
		if err != nil {
			return err
		}
		for _, of := range []string{"", name + "."} {
			p.Figures[of+n] += float64(io.N)
			p.Figures[of+bytes] += float64(io.Bytes)
		}
		if s := distribution(io.Spread[:], io.NS); s != nil {
			s.Role, s.What, s.Of = roleNames[d.Role%roles], notebook.BlockIO, name+" "+of
			p.Spread = append(p.Spread, *s)
		}
	}
	return each.Err()
}
