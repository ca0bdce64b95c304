package export

import (
	"tare/desk/data"
	"tare/desk/words"
)

// weights is what a row's guests take of the host's memory. Sizes are MiB, and of one guest.
type weights struct {
	Points []weighing `json:"points"`
	Merged []weighing `json:"with_ksm"`
	Added  *added     `json:"one_more_adds"` // null where they were weighed at one number alone
	Last   *lastGuest `json:"last_guest"`
	Alone  *alone     `json:"last_guest_alone,omitempty"` // what no other process has of it, where the study asked
}

// alone is what the guest that came last alone has, merged where the study merges.
type alone struct {
	Guests   int          `json:"guests"`
	Merged   bool         `json:"merged"`
	Own      interval     `json:"own"`
	Why      string       `json:"why,omitempty"` // a VM could not say what its memory is to it
	Emulator *framesPart  `json:"emulator,omitempty"`
	RAM      []framesPart `json:"ram,omitempty"`
	Files    []framesPart `json:"files,omitempty"`
}

type framesPart struct {
	Name  string   `json:"name,omitempty"`
	Guest interval `json:"guest"`
	RSS   interval `json:"rss"`
	Own   interval `json:"own"`
	Alike interval `json:"duplicates"`
	Idle  interval `json:"idle"`
}

func framesOf(f data.Frames) framesPart {
	return framesPart{f.Name, estimate(f.Guest), estimate(f.RSS), estimate(f.Own), estimate(f.Alike), estimate(f.Idle)}
}

func aloneOf(a *data.Alone) *alone {
	if a == nil {
		return nil
	}
	j := &alone{Guests: a.Guests, Merged: a.Merged, Own: estimate(a.Own), Why: a.Why}
	if r := a.RAM; r != nil {
		emulator := framesOf(r.Emulator)
		j.Emulator = &emulator
		for _, k := range r.Kinds {
			j.RAM = append(j.RAM, framesOf(k))
		}
		for _, f := range r.Files {
			j.Files = append(j.Files, framesOf(f))
		}
	}
	return j
}

type weighing struct {
	Guests    int       `json:"guests"`
	PSS       interval  `json:"pss"`
	Anonymous interval  `json:"anonymous"`
	File      interval  `json:"file"`
	Tables    interval  `json:"page_tables"`
	Engine    interval  `json:"engine"`
	Ruler     interval  `json:"ruler"`
	Kernel    *interval `json:"kernel_memory,omitempty"` // where the host tells it
	Copy      *interval `json:"kernel_copy,omitempty"`   // the emulator's copy of the guest's kernel, which is in none of these
	CPUS      *interval `json:"ksmd_cpu_s,omitempty"`
	Unsettled int       `json:"unsettled,omitempty"`
}

type added struct {
	From      int      `json:"from"`
	To        int      `json:"to"`
	PSS       interval `json:"pss"`
	Anonymous interval `json:"anonymous"`
	File      interval `json:"file"`
}

type lastGuest struct {
	Guests     int          `json:"guests"`
	PSS        interval     `json:"pss"`
	Processes  []memoryPart `json:"processes"`
	Kinds      []memoryPart `json:"kinds"`
	Files      []memoryPart `json:"files"`
	Duplicates *duplicates  `json:"duplicates"` // null where contents were not compared
}

type memoryPart struct {
	Name  string   `json:"name"`
	Count *float64 `json:"count"`
	RSS   interval `json:"rss"`
	PSS   interval `json:"pss"`
}

type duplicates struct {
	Within alike `json:"within"`
	Host   alike `json:"host"`
	Guests alike `json:"guests"`
}

type alike struct {
	AnonAnon interval `json:"anonymous_anonymous"`
	FileFile interval `json:"file_file"`
	AnonFile interval `json:"anonymous_file"`
	Sum      interval `json:"all"`
}

// weightsOf is nil where no guest of the row was weighed.
func weightsOf(w *data.Weights) *weights {
	if w == nil {
		return nil
	}
	j := &weights{Points: weighings(w.Points), Merged: weighings(w.Merged), Alone: aloneOf(w.Alone)}
	if a := w.Added; a != nil {
		j.Added = &added{a.From, a.To, estimate(a.PSS), estimate(a.Anonymous), estimate(a.File)}
	}
	if l := w.Last; l != nil {
		j.Last = &lastGuest{Guests: l.Guests, PSS: estimate(l.PSS), Processes: memoryParts(l.Processes), Kinds: memoryParts(l.Kinds), Files: memoryParts(l.Files)}
		if d := l.Duplicates; d != nil {
			of := func(a data.Alike) alike {
				return alike{estimate(a.AnonAnon), estimate(a.FileFile), estimate(a.AnonFile), estimate(a.Sum)}
			}
			j.Last.Duplicates = &duplicates{of(d.Within), of(d.Host), of(d.Guests)}
		}
	}
	return j
}

func weighings(of []data.Weighing) []weighing {
	all := []weighing{}
	for _, w := range of {
		j := weighing{
			Guests: w.Guests, PSS: estimate(w.PSS), Anonymous: estimate(w.Anonymous), File: estimate(w.File), Tables: estimate(w.Tables),
			Engine: estimate(w.Engine), Ruler: estimate(w.Ruler), Unsettled: w.Unsettled,
		}
		if w.CPUS.N > 0 {
			cpu := estimate(w.CPUS)
			j.CPUS = &cpu
		}
		if w.Kernel.N > 0 {
			kernel := estimate(w.Kernel)
			j.Kernel = &kernel
		}
		if w.Copy.N > 0 {
			copied := estimate(w.Copy)
			j.Copy = &copied
		}
		all = append(all, j)
	}
	return all
}

func memoryParts(of []data.MemoryPart) []memoryPart {
	all := []memoryPart{}
	for _, p := range of {
		name := p.Name
		if p.Others {
			name = words.MemoryPart(p)
		}
		all = append(all, memoryPart{name, number(p.Count), estimate(p.RSS), estimate(p.PSS)})
	}
	return all
}
