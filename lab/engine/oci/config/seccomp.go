//go:build linux

package config

import (
	"fmt"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Seccomp is Docker's default filter of system calls for this kernel and Capabilities: Docker's own list, from Docker's own
// package.
func Seccomp() (*specs.LinuxSeccomp, error) {
	s, err := seccomp.GetDefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: Capabilities}}})
	if err != nil {
		return nil, fmt.Errorf("seccomp filter of Docker: %w", err)
	}
	return s, nil
}
