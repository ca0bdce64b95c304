package crowd

import (
	"context"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// Before runs, in the guest and unmeasured, the preparation of the order's work, if the workload has one. The order then finds its
// output in the scratch folder. cause says why it failed.
func Before(ctx context.Context, g Guest, ready *workload.Ready, at workload.Seat, timeout time.Duration, order *ruler.Order) (cause *notebook.Message) {
	w := ready.Workload
	if len(w.Setting.Before) == 0 {
		return nil
	}
	first := w.Order(w.Setting.Before, ready.Params, ready.Image, at)
	first.Timeout, order.KeepScratch = timeout, true
	res, _, err := g.Ruler().Run(ctx, first)
	switch {
	case ctx.Err() != nil:
		return nil // the caller checks it
	case err != nil:
		return notebook.Say("preparing-guest", "cause", Silent(err, g))
	case workload.Failure(res) != nil:
		return notebook.Say("preparing-guest", "cause", workload.Failure(res))
	}
	return nil
}
