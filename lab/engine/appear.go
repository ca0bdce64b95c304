package engine

import (
	"fmt"
	"time"

	"tare/lab/journal"
)

// inFlight is how long after the request a guest may still appear: a killed Tare may have died between its request and the daemon's reaction.
const inFlight = 3 * time.Second

// Asked is when the guest of a journal's entry was requested: the entry's time (RFC 3339). The error says that it has none.
func Asked(e journal.Entry) (time.Time, error) {
	asked, err := time.Parse(time.RFC3339Nano, e.Detail["time"])
	if err != nil {
		return time.Time{}, fmt.Errorf("the journal's entry for %s: %w", e.Target, err)
	}
	return asked, nil
}

// Appears is until when a guest that was requested then may still appear. A time in the future, by a clock that was set back, is as good as now.
func Appears(asked time.Time) time.Time {
	return time.Now().Add(min(inFlight, inFlight-time.Since(asked)))
}
