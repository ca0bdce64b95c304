package fleet

import (
	"sync"

	"tare/desk/claims"
	"tare/desk/data"
)

// Claimed holds the verdicts of all hosts on a claim, each from its own results.
type Claimed struct {
	Claim    claims.Claim
	Hosts    map[claims.Answer]int
	Refuted  []*Host         // on which it does not hold, in the order of the hosts
	Concerns bool            // it is about something that a host's study has (claims.Verdict.Concerns)
	First    *claims.Verdict // of the first host that refutes it, else of the first host
	first    int             // that host's place
}

// Judge tests the claims on each host, a host at a time on each CPU. The verdicts of a host are corrected together, as `tare claims` does for a
// folder. They are not corrected across hosts. A host that cannot be read any more is added to Fleet.Unread, and has no verdict.
func (f *Fleet) Judge(all []claims.Claim, opt data.Options) []Claimed {
	judged := make([]Claimed, len(all))
	for i, c := range all {
		judged[i] = Claimed{Claim: c, Hosts: map[claims.Answer]int{}, first: len(f.Hosts)}
	}
	refuted := make([][]bool, len(all)) // by claim and host
	for i := range refuted {
		refuted[i] = make([]bool, len(f.Hosts))
	}
	errs := make([]error, len(f.Hosts))
	var mu sync.Mutex
	each(len(f.Hosts), func(at int) {
		s, err := data.Read(f.Hosts[at].Folders, opt)
		if errs[at] = err; err != nil {
			return
		}
		verdicts := claims.Judge(s, all)
		mu.Lock()
		defer mu.Unlock()
		for i := range verdicts {
			v, c := &verdicts[i], &judged[i]
			c.Hosts[v.Answer]++
			c.Concerns = c.Concerns || v.Concerns()
			refutes := v.Answer == claims.DoesNotHold
			refuted[i][at] = refutes
			known := c.First != nil && c.First.Answer == claims.DoesNotHold
			if refutes == known && at < c.first || refutes && !known {
				c.First, c.first = v, at
			}
		}
	})
	for at, err := range errs {
		if err != nil {
			f.Unread = append(f.Unread, Unread{Dir: f.Hosts[at].Folders[0], Err: err})
		}
	}
	for i := range judged {
		for at, is := range refuted[i] {
			if is {
				judged[i].Refuted = append(judged[i].Refuted, f.Hosts[at])
			}
		}
	}
	return judged
}
