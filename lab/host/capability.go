//go:build linux

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tare/notebook"
)

// probeTimeout is the default time limit of a probe.
const probeTimeout = 10 * time.Second

// probe is one named question about the host, answered by trying.
type probe struct {
	name    string
	timeout time.Duration // 0: probeTimeout
	// try answers. It sets Answer, Why, and Do if not supported; its caller sets the name. It should return when ctx ends; a probe
	// that does not is abandoned, and its answer is inconclusive.
	try func(ctx context.Context) notebook.Capability
}

// Capabilities asks what the host can do while it measures, and returns the answers always in the same order. It asks all questions
// at the same time, each with a time limit. Nothing that a probe makes outlives it.
func Capabilities(ctx context.Context) []notebook.Capability { return ask(ctx, probes) }

// Tools asks in the same way for the programs that make images, disks and workloads.
func Tools(ctx context.Context) []notebook.Capability { return ask(ctx, tools) }

func ask(ctx context.Context, probes []probe) []notebook.Capability {
	answers := make([]notebook.Capability, len(probes))
	var wg sync.WaitGroup
	for i, p := range probes {
		wg.Go(func() { answers[i] = p.ask(ctx) })
	}
	wg.Wait()
	return answers
}

func (p probe) ask(ctx context.Context) notebook.Capability {
	timeout := cmp.Or(p.timeout, probeTimeout)
	probeCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer := make(chan notebook.Capability, 1)
	go func() { answer <- p.try(probeCtx) }()
	var c notebook.Capability
	select {
	case c = <-answer:
	case <-probeCtx.Done():
		// The probe's last answer, if it comes at once: it knows best what it was waiting for.
		select {
		case c = <-answer:
		case <-time.After(time.Second):
			c = inconclusive("no answer within %v", timeout)
		}
	}
	if ctx.Err() != nil && c.Answer != notebook.Supported { // whichever of the two came first
		c = inconclusive("interrupted")
	}
	c.Name = p.name
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

// ended reports whether an error is only that of the probe's own time limit.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
