//go:build linux

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"tare/notebook"
)

// ThreadsOf are the threads of a guest's processes, where the guest runs on the host's own kernel. Those of the process
// ruler have its role, all others are work. A process that ends meanwhile is left out.
func ThreadsOf(pids []int, ruler int) ([]Thread, error) {
	var all []Thread
	for _, pid := range pids {
		role := notebook.RoleWork
		if pid == ruler {
			role = notebook.RoleRuler
		}
		tids, err := Tasks(pid)
		if err != nil {
			return nil, err
		}
		for _, tid := range tids {
			all = append(all, Thread{ID: tid, Role: role})
		}
	}
	return all, nil
}

// Tasks are the threads of a process; none where it has ended.
func Tasks(pid int) ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("threads of process %d: %w", pid, err)
	}
	var tids []int
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, fmt.Errorf("threads of process %d: %q is not a number", pid, e.Name())
		}
		tids = append(tids, tid)
	}
	return tids, nil
}
