//go:build linux

package engine

import (
	"tare/lab/proc"
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
