package crowd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// BootTime is how long a whole system may take to boot; three times as long where it is emulated.
const BootTime = 2 * time.Minute

// Group is several guests of one treatment that live at the same time, each with the same work. The first guest does not belong to
// the group: whoever made it removes it.
type Group struct {
	Host      Host
	Treatment notebook.Treatment
	Ready     *workload.Ready
	Timeout   time.Duration // limit for one command of a load
	First     Guest

	Guests []Guest    // made so far, First among them
	Works  []*Service // the guests' work; nil for a whole system, which has no work of its own
}

// Another adds one more guest to the group; cause says why it cannot. each is the memory that one guest takes, in bytes, as far as
// known.
func (c *Group) Another(ctx context.Context, each int64) (g Guest, cause string) {
	if len(c.Guests) == 0 {
		c.Guests = []Guest{c.First}
		return c.First, ""
	}
	if cause := Room(len(c.Guests), each, 0); cause != "" {
		return nil, cause
	}
	ctx, cancel := context.WithTimeout(ctx, ProvisionTimeout)
	defer cancel()
	g, err := c.Host.Provision(ctx, Want{Treatment: c.Treatment, ID: NewID(), Work: c.Ready})
	if err != nil {
		return nil, "no guest: " + err.Error()
	}
	c.Guests = append(c.Guests, g)
	return g, ""
}

// Begin starts the work of the latest guest and waits until it has begun.
func (c *Group) Begin(ctx context.Context) (cause string, err error) {
	g := c.Guests[len(c.Guests)-1]
	var s *Service
	switch {
	case c.Ready.Workload.System:
		cause = Boot(ctx, g, c.Ready, c.Treatment)
	case c.Ready.Workload.Service != nil:
		s, cause, err = Serve(ctx, c.Host, g, c.Treatment, NewID(), c.Ready, c.Timeout)
	default:
		var begun ruler.Begun
		s, begun = Start(ctx, g, c.Ready, c.Treatment)
		cause = s.HasBegun(begun)
	}
	c.Works = append(c.Works, s)
	return cause, err
}

// BeginAll starts the work of all guests together, so that work which ends by itself is still running in the first guest when it
// begins in the last. cause says why the work of a guest did not begin.
func (c *Group) BeginAll(ctx context.Context) (cause string, err error) {
	if c.Ready.Workload.Service != nil {
		for i, g := range c.Guests {
			s, cause, err := Serve(ctx, c.Host, g, c.Treatment, NewID(), c.Ready, c.Timeout)
			if s != nil {
				c.Works = append(c.Works, s)
			}
			if cause != "" || err != nil {
				return fmt.Sprintf("guest %d: %s", i+1, cause), err
			}
		}
		return "", nil
	}
	var started []ruler.Begun
	for _, g := range c.Guests {
		s, b := Start(ctx, g, c.Ready, c.Treatment)
		c.Works, started = append(c.Works, s), append(started, b)
	}
	for i, b := range started {
		if why := c.Works[i].HasBegun(b); why != "" && cause == "" {
			cause = fmt.Sprintf("guest %d: %s", i+1, why)
		}
	}
	return cause, nil
}

// Over is the index of a guest whose work has ended; -1 if none has.
func (c *Group) Over() int {
	return slices.IndexFunc(c.Works, func(s *Service) bool { return s != nil && s.Over() })
}

// Leave ends the work of all guests and removes all guests except the first.
func (c *Group) Leave(ctx context.Context) (err error) {
	for _, w := range slices.Backward(c.Works) {
		err = errors.Join(err, w.TakeDown(ctx))
	}
	return errors.Join(err, Vacate(ctx, c.Guests[min(1, len(c.Guests)):]))
}

// Boot waits until the whole system in the guest has booted; cause says why it has not.
func Boot(ctx context.Context, g Guest, ready *workload.Ready, t notebook.Treatment) (cause string) {
	order := ready.Workload.Order(ready.Workload.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
	order.Timeout = Patience(t, BootTime)
	res, _, err := g.Ruler().Run(ctx, order)
	switch {
	case ctx.Err() != nil:
		return ""
	case err != nil:
		return "its system did not come up: " + err.Error() + Diagnosis(g)
	case workload.Failure(res) != "":
		return "its system did not come up: " + workload.Failure(res) + Diagnosis(g)
	}
	return ""
}
