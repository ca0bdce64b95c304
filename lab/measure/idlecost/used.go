//go:build linux

package idlecost

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tare/lab/crowd"
)

// used is what the processes of guests have used so far.
type used struct {
	cpu     time.Duration
	wakeUps int64 // how often threads have gone to sleep; a wake-up ends each sleep
}

// usedBy sums what the processes of guests have used. Threads that have ended are left out.
func usedBy(guests []crowd.Guest) (u used, err error) {
	if u.cpu, err = crowd.Used(guests); err != nil {
		return u, err
	}
	for _, g := range guests {
		pids, err := g.Processes()
		if err != nil {
			return u, err
		}
		for _, pid := range pids {
			files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
			if err != nil {
				return u, err
			}
			for _, file := range files {
				n, err := sleeps(file)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return u, err
				}
				u.wakeUps += n
			}
		}
	}
	return u, nil
}

// sleeps is how often the thread of a status file has gone to sleep.
func sleeps(file string) (n int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, is := strings.CutPrefix(lines.Text(), "voluntary_ctxt_switches:"); is {
			return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no voluntary_ctxt_switches", file)
}
