// Package origin reads descriptions by others of a command or service to measure: a line of a shell, a file of environment
// variables, a container of Docker Engine, a service of a Compose file.
package origin

// Origin is how a container or a Compose file describes its work.
type Origin struct {
	Name    string // of the container or service, for messages
	Image   string
	Command []string // empty: the image's own
	Args    []string // for the image's own ENTRYPOINT, instead of its CMD
	Env     []string // KEY=VALUE
	Volumes []Volume
	Dir     string // working folder; empty: the image's own
	User    string // as an image names it; empty: the image's own
	Ports   []int  // published or exposed ports, in order, each once

	Cores  float64 // its limit; 0: none
	Memory int64   // its limit in bytes; 0: none
	CPUSet string  // "0-1,3"; empty: all CPUs

	Runtime string // of a container, as Docker names it; empty: Docker's usual one

	Left []string // what is not taken over: a line each
}

// Volume is a folder or file of the host, and its place in the guest.
type Volume struct{ Host, Guest string }
