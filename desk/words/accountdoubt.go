package words

import (
	"fmt"
	"math"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/notebook"
)

// accountDoubt says a doubt about an account; empty where it is none of these.
func accountDoubt(d data.Doubt) string {
	switch d := d.(type) {
	case explain.LargerBaseline:
		no := "no " + cores(d.Cores)
		if d.Cores == 0.5 {
			no = "no half core"
		}
		return fmt.Sprintf("bare metal has %s: compared with bare metal with %s", no, cores(d.With))
	case explain.NoBareMetalSize:
		return "no baseline: bare metal was not measured at " + Plain(d.Instance) + "; the study's bm needs that instance type"
	case explain.NoBareMetalWork:
		return "no baseline: bare metal was not measured for " + Plain(d.Workload) + " here; the study needs the platform bm, at a size of whole cores, since bare metal has no part of one"
	case explain.BaselineUntraced:
		return "no account: " + against(d.Against) + " has no traced trials"
	case explain.AllTracedFailed:
		who := against(d.Against)
		if d.Own {
			who = "this treatment"
		}
		return "no account: every traced trial of " + who + " failed"
	case explain.NoCompleteRound:
		return "no account: no round has successful traced and other trials of both this and " + against(d.Against)
	case explain.IncompleteRounds:
		return fmt.Sprintf("%d of %s count: the others lack a successful traced or other trial of this or of %s", d.Complete, Count(d.Of, "round"), against(d.Against))
	case explain.Unbelievable:
		return was(d.Numbers, "number") + " beyond all bounds and not used"
	case explain.SomeTracedFailed:
		return fmt.Sprintf("%d of %s failed and are not used: %s", d.Failed, Count(d.Of, "traced trial"), d.Cause)
	case explain.EventsLost:
		return "the tracers lost " + Count(int(min(d.Events, math.MaxInt32)), "event") + ", which their numbers lack"
	case explain.Silent:
		return Count(d.Trials, "traced trial") + " without data from any tracer"
	case explain.Coarse:
		why := "the tracer " + notebook.TracerScheduler + " was not asked for"
		switch {
		case d.Why.Why != "":
			why = Missing(d.Why)
		case d.Asked:
			why = "the tracer " + notebook.TracerScheduler + " does not say why"
		}
		return "coarse: nothing followed the scheduler (" + why + "), so only user, system and throttled time are known, and waiting is unexplained"
	case explain.TracerMissing:
		name := Plain(d.Tracer)
		if d.Partly {
			return "the tracer " + name + ", in part: " + Missing(d.Why)
		}
		return "the tracer " + name + " observed nothing: " + Missing(d.Why)
	case explain.Unseen:
		return fmt.Sprintf("the tracers saw %s of a traced trial's %s: the rest is among what is unexplained", Duration(d.Saw), Duration(d.Took))
	case explain.OtherMetric:
		return "the account is of the trials' elapsed time, which is not the " + Plain(d.Metric)
	case explain.Untraced:
		return Count(d.Folders, "folder") + " without traced trials: not in any account"
	}
	return ""
}

// Missing says why a tracer observed nothing.
func Missing(m data.Missing) string {
	if m.Inside {
		return "in the guest: " + m.Why
	}
	return m.Why
}
