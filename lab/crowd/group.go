package crowd

import (
	"context"
	"errors"
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
func (c *Group) Another(ctx context.Context, each int64) (g Guest, cause *notebook.Message) {
	if len(c.Guests) == 0 {
		c.Guests = []Guest{c.First}
		return c.First, nil
	}
	if cause := Room(len(c.Guests), each, 0); cause != nil {
		return nil, cause
	}
	ctx, cancel := context.WithTimeout(ctx, ProvisionTimeout)
	defer cancel()
	g, err := c.Host.Provision(ctx, Want{Treatment: c.Treatment, ID: NewID(), Work: c.Ready})
	if err != nil {
		return nil, notebook.Say("no-guest", "cause", err)
	}
	c.Guests = append(c.Guests, g)
	return g, nil
}

// Begin starts the work of the latest guest and waits until it has begun.
func (c *Group) Begin(ctx context.Context) (cause *notebook.Message, err error) {
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
func (c *Group) BeginAll(ctx context.Context) (cause *notebook.Message, err error) {
	if c.Ready.Workload.Service != nil {
		for i, g := range c.Guests {
			s, cause, err := Serve(ctx, c.Host, g, c.Treatment, NewID(), c.Ready, c.Timeout)
			if s != nil {
				c.Works = append(c.Works, s)
			}
			if cause != nil || err != nil {
				return notebook.Say("of-guest", "guest", i+1, "cause", cause), err
			}
		}
		return nil, nil
	}
	var started []ruler.Begun
	for _, g := range c.Guests {
		s, b := Start(ctx, g, c.Ready, c.Treatment)
		c.Works, started = append(c.Works, s), append(started, b)
	}
	for i, b := range started {
		if why := c.Works[i].HasBegun(b); why != nil && cause == nil {
			cause = notebook.Say("of-guest", "guest", i+1, "cause", why)
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
	return errors.Join(err, DestroyAll(ctx, c.Guests[min(1, len(c.Guests)):]))
}

// Boot waits until the whole system in the guest has booted; cause says why it has not.
func Boot(ctx context.Context, g Guest, ready *workload.Ready, t notebook.Treatment) (cause *notebook.Message) {
	order := ready.Workload.Order(ready.Workload.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
	order.Timeout = Patience(t, BootTime)
	res, _, err := g.Ruler().Run(ctx, order)
	if cause = notebook.ErrorMessage(err); err == nil {
		cause = workload.Failure(res)
	}
	if ctx.Err() != nil || cause == nil {
		return nil
	}
	return notebook.Say("not-booted", "cause", Diagnosed(cause, g))
}
