//go:build linux

package config

import (
	"fmt"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Seccomp is the filter of system calls that Docker gives a container by default, for this kernel and Capabilities: Docker's own
// list, by Docker's own package.
func Seccomp() (*specs.LinuxSeccomp, error) {
	s, err := seccomp.GetDefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: Capabilities}}})
	if err != nil {
		return nil, fmt.Errorf("seccomp filter of Docker: %w", err)
	}
	return s, nil
}
