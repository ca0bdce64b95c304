//go:build linux

package ruler

import "io"

// Options of Serve.
type Options struct{}

// Serve is the guest's end: it says hello on rw and carries out orders until the stream ends.
func Serve(rw io.ReadWriteCloser, o Options) error { return errNotWritten }

// Main is `tare ruler`: it prepares the process and serves. It returns the exit status.
func Main(args []string) int { return 1 }
