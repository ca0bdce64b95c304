package crowd

import (
	"context"
	"time"

	"tare/lab/proc"
	"tare/notebook"
)

// Reserve is the share of the host's memory that is kept free of guests.
const Reserve = 0.05

const (
	stillFor = time.Second // guests whose memory does not grow for this long have settled; three times as long where they are emulated
	still    = 0.005       // largest growth in stillFor that counts as settled, as a share of their memory
	settling = time.Minute // longest wait; three times as long where they are emulated
)

// Room says why the host should not get another guest: the memory left is less than what one guest takes, the reserve, and promised
// together. guests is their number so far, each is what one of them takes, and promised is what one of them may still grow by. The
// last two are in bytes.
func Room(guests int, each, promised int64) *notebook.Message {
	left, err := proc.Host.Memory("MemAvailable")
	if err != nil {
		return notebook.ErrorMessage(err)
	}
	all, err := proc.Host.Memory("MemTotal")
	if err != nil {
		return notebook.ErrorMessage(err)
	}
	if keep := int64(Reserve*float64(all)) + promised; left-each < keep {
		return notebook.Say("no-room", "left_mib", left/notebook.MiB, "kept_mib", keep/notebook.MiB, "each_mib", each/notebook.MiB, "guests", guests)
	}
	return nil
}

// Settle waits until the guests' memory has stopped growing; restless says that it did not.
func Settle(ctx context.Context, guests []Guest, t notebook.Treatment) (took time.Duration, restless *notebook.Message, err error) {
	began := time.Now()
	last := int64(-1)
	for pause := Patience(t, stillFor); ; {
		sum := int64(0)
		for _, g := range guests {
			n, err := g.Resident()
			if err != nil {
				return 0, nil, err
			}
			sum += n
		}
		grown := float64(sum-last) / float64(max(sum, 1))
		took = time.Since(began)
		switch {
		case last >= 0 && max(grown, -grown) < still:
			return took, nil, nil
		case took > Patience(t, settling):
			return took, notebook.Say("memory-grows", "guests", len(guests), "share", grown, "interval", pause, "after", took.Round(time.Second)), nil
		}
		last = sum
		select {
		case <-ctx.Done():
			return took, nil, ctx.Err()
		case <-time.After(pause): // the interval over which growth is measured
		}
	}
}
