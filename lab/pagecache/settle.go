//go:build linux

package pagecache

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	unwritten  = 16 << 20         // bytes that may wait for the disk without disturbing what comes next
	settleTime = 30 * time.Second // after which Settle waits no longer
)

// Settle waits until the host has written to its disks what waits for them, if that is more than 16 MiB. So the next trial does not
// share the disk with what the last one left. settled: nothing is left to write. It waits for 30 seconds at most, or until ctx ends;
// the kernel goes on writing.
func Settle(ctx context.Context) (settled bool, err error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return false, err
	}
	defer f.Close()
	waits, err := waiting(bufio.NewScanner(f))
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

// waiting is how many bytes wait for the disks, by the lines of /proc/meminfo.
func waiting(lines *bufio.Scanner) (bytes int64, err error) {
	found := 0
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "Dirty" && name != "Writeback" {
			continue
		}
		var kb int64
		if _, err := fmt.Sscanf(value, "%d kB", &kb); err != nil {
			return 0, fmt.Errorf("/proc/meminfo: %s:%.40s: %w", name, value, err)
		}
		bytes, found = bytes+kb<<10, found+1
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("/proc/meminfo: %w", err)
	}
	if found < 2 {
		return 0, fmt.Errorf("/proc/meminfo has %d of the lines Dirty and Writeback", found)
	}
	return bytes, nil
}
