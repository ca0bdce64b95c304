package durable

import "fmt"

// HeldError says that another process has a lock.
type HeldError struct {
	Path string
	By   string // its process id, where it is known
}

func (e *HeldError) Error() string { return fmt.Sprintf("%s is held by process %s", e.Path, e.By) }
