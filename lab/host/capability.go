//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tare/notebook"
)

// Names of the capabilities that this package probes. Others come with the probes given to Capabilities.
const (
	CapRoot              = "root"
	CapCgroupCPU         = "cgroup cpu"
	CapCgroupCPUSet      = "cgroup cpuset"
	CapCgroupMemory      = "cgroup memory"
	CapMke2fs            = "mke2fs"
	CapMmdebstrap        = "mmdebstrap"
	CapGCC               = "gcc"
	CapOverlayfs         = "overlayfs"
	CapNetworkNamespaces = "network namespaces"
	CapPerfSoftware      = "perf software events"
	CapPerfHardware      = "perf hardware events"
)

// ProbeTimeout is the time for a probe that names none.
const ProbeTimeout = 10 * time.Second

// Probe is one named question to the host, answered by trying the thing.
type Probe struct {
	Name    string
	Timeout time.Duration // 0: ProbeTimeout
	Alone   bool          // run it while no other runs, for its answer depends on how fast it comes
	// Try answers. It sets Answer, Why, and where not supported Do; the name is set for it. It should return when
	// ctx ends; one that does not is left behind, and its answer is inconclusive.
	Try func(ctx context.Context) notebook.Capability
}

// Capabilities asks this package's own probes and the caller's, and returns the answers in that order. Probes run
// at the same time, except those that want to be alone, which run after the others. Every probe is bounded by its
// timeout. Nothing that a probe makes outlives it.
func Capabilities(ctx context.Context, extra ...Probe) []notebook.Capability {
	return ask(ctx, slices.Concat(probes(), extra))
}

func ask(ctx context.Context, probes []Probe) []notebook.Capability {
	answers := make([]notebook.Capability, len(probes))
	var wg sync.WaitGroup
	for i, p := range probes {
		if !p.Alone {
			wg.Go(func() { answers[i] = p.ask(ctx) })
		}
	}
	wg.Wait()
	for i, p := range probes {
		if p.Alone {
			answers[i] = p.ask(ctx)
		}
	}
	return answers
}

func (p Probe) ask(ctx context.Context) notebook.Capability {
	timeout := p.Timeout
	if timeout == 0 {
		timeout = ProbeTimeout
	}
	probeCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer := make(chan notebook.Capability, 1)
	go func() { answer <- p.Try(probeCtx) }()
	var c notebook.Capability
	select {
	case c = <-answer:
	case <-probeCtx.Done():
		// Its last word, if it comes at once: it knows better what it was waiting for.
		grace := time.NewTimer(time.Second)
		defer grace.Stop()
		select {
		case c = <-answer:
		case <-grace.C:
			c = inconclusive("no answer within %v", timeout)
		}
		if ctx.Err() != nil && c.Answer != notebook.Supported {
			c = inconclusive("interrupted")
		}
	}
	c.Name = p.Name
	return c
}

func supported(format string, a ...any) notebook.Capability {
	return notebook.Capability{Answer: notebook.Supported, Why: fmt.Sprintf(format, a...)}
}

func unsupported(do, format string, a ...any) notebook.Capability {
	return notebook.Capability{Answer: notebook.NotSupported, Why: fmt.Sprintf(format, a...), Do: do}
}

func inconclusive(format string, a ...any) notebook.Capability {
	return notebook.Capability{Answer: notebook.Inconclusive, Why: fmt.Sprintf(format, a...)}
}

// ended says that an error is only that of the probe's own time limit.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
