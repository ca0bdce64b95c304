//go:build linux

package pagecache

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

const (
	unwritten  = 16 << 20         // bytes that may wait for the disk without disturbing the next trial
	settleTime = 30 * time.Second // limit of Settle's wait
)

// Settle waits until the host has written to its disks what waits for them, if that is more than 16 MiB. So the next trial does not
// share the disk with the last one's writes. settled: nothing is left to write. It waits at most 30 seconds, or until ctx ends; the
// kernel goes on writing.
func Settle(ctx context.Context) (settled bool, err error) {
	waits, err := waiting(proc.Host)
	if err != nil || waits <= unwritten {
		return err == nil, err
	}
	written := make(chan struct{})
	go func() {
		unix.Sync()
		close(written)
	}()
	patience := time.NewTimer(settleTime)
	defer patience.Stop()
	select {
	case <-written:
		return true, nil
	case <-patience.C:
	case <-ctx.Done():
	}
	return false, nil
}

// waiting is the number of bytes that wait for the disks.
func waiting(t proc.Tree) (bytes int64, err error) {
	for _, field := range []string{"Dirty", "Writeback"} {
		n, err := t.Memory(field)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}
