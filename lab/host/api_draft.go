//go:build linux

package host

import (
	"context"
	"io"
	"time"

	"tare/notebook"
)

func Inspect(ctx context.Context) (notebook.Host, error)          { return notebook.Host{}, errNotYet }
func ChooseCPUs(h notebook.Host, n int) ([]int, error)            { return nil, errNotYet }
func LimitsOf(pid int) (notebook.Limits, error)                   { return notebook.Limits{}, errNotYet }
func CgroupOf(pid int, controller string) (dir string, err error) { return "", errNotYet }
func CgroupProcs(dir string) ([]int, error)                       { return nil, errNotYet }
func OOMKills(cgroupDir string) (int64, error)                    { return 0, errNotYet }
func ParseCPUList(s string) ([]int, error)                        { return nil, errNotYet }
func FormatCPUList(cpus []int) string                             { return "" }
func Describe(w io.Writer, h notebook.Host) error                 { return errNotYet }

type Probe struct {
	Name    string
	Timeout time.Duration
	Alone   bool
	Try     func(ctx context.Context) notebook.Capability
}

func Capabilities(ctx context.Context, extra ...Probe) []notebook.Capability { return nil }
