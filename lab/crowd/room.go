package crowd

import (
	"context"
	"fmt"
	"time"

	"tare/lab/proc"
	"tare/notebook"
)

// Reserve is the share of the host's memory that guests are not given.
const Reserve = 0.05

const (
	stillFor = time.Second // guests that take no more for so long have settled; three times that where they are emulated
	still    = 0.005       // as a share of what they take
	settling = time.Minute // at most; three times that where they are emulated
)

// Room says why the host should not get one more guest beside those that there are: it takes more than what is left, by what they take each.
// promised is what one of them may still come to. Both are bytes.
func Room(guests int, each, promised int64) string {
	left, err := proc.Host.Memory("MemAvailable")
	if err != nil {
		return err.Error()
	}
	all, err := proc.Host.Memory("MemTotal")
	if err != nil {
		return err.Error()
	}
	if keep := int64(Reserve*float64(all)) + promised; left-each < keep {
		return fmt.Sprintf("the host has %d MiB of memory left, of which %d are kept, and a guest takes about %d: it has room for %d such guests",
			left/notebook.MiB, keep/notebook.MiB, each/notebook.MiB, guests)
	}
	return ""
}

// Settle waits until the guests take no more memory; restless says that they did not come to that.
func Settle(ctx context.Context, guests []Guest, t notebook.Treatment) (took time.Duration, restless string, err error) {
	began := time.Now()
	last := int64(-1)
	for pause := Patience(t, stillFor); ; {
		sum := int64(0)
		for _, g := range guests {
			n, err := g.Resident()
			if err != nil {
				return 0, "", err
			}
			sum += n
		}
		grown := float64(sum-last) / float64(max(sum, 1))
		took = time.Since(began)
		switch {
		case last >= 0 && max(grown, -grown) < still:
			return took, "", nil
		case took > Patience(t, settling):
			return took, fmt.Sprintf("%d guests still took %.1f %% more memory in %v, after %v", len(guests), 100*grown, pause, took.Round(time.Second)), nil
		}
		last = sum
		select {
		case <-ctx.Done():
			return took, "", ctx.Err()
		case <-time.After(pause): // it is what is measured: how much they take in that time
		}
	}
}
