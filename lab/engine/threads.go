//go:build linux

package engine

import (
	"tare/lab/proc"
	"tare/notebook"
)

// ThreadsOf lists the threads of the processes of a guest on the host's own kernel. Those of the process ruler have its role, all
// others are work. It skips a process that ends during the call.
func ThreadsOf(pids []int, ruler int) ([]Thread, error) {
	var all []Thread
	for _, pid := range pids {
		role := notebook.RoleWork
		if pid == ruler {
			role = notebook.RoleRuler
		}
		tids, err := proc.Threads(pid)
		if err != nil {
			return nil, err
		}
		for _, tid := range tids {
			all = append(all, Thread{ID: tid, Role: role})
		}
	}
	return all, nil
}
