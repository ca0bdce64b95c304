package notebook

import "slices"

// Starting is how a study times the starts of guests (paper "virtualization-overheads", chapter 5): a trial is one guest, asked for, brought to its first
// useful answer and destroyed.
type Starting struct {
	Caches    []string         `json:"caches"`            // of Caches; each is a treatment
	Restore   bool             `json:"restore,omitempty"` // the guest is then saved, and restored
	Published []PublishedStart `json:"published,omitempty"`
}

// PublishedStart is what a paper has of a kind of guest.
type PublishedStart struct {
	Name     string  `json:"name" yaml:"name"`                             // as the paper has it
	Moment   string  `json:"moment,omitempty" yaml:"moment,omitempty"`     // that it calls the end of a start: one of Moments
	StartS   float64 `json:"start_s" yaml:"start"`                         // seconds
	RestoreS float64 `json:"restore_s,omitempty" yaml:"restore,omitempty"` // seconds; 0: it has none
}

// ParamCache is the parameter of a treatment that says whether the files that a start reads are in the host's page cache: one of Caches.
const ParamCache = "cache"

// What the host's page cache has before a start.
const (
	CacheCold = "cold" // nothing of the guest's root, its files, and what its engine reads for it
	CacheWarm = "warm" // all of that
)

// Caches are both.
var Caches = []string{CacheCold, CacheWarm}

// Moments of a start, and of a restore, in the order in which they usually come. Each is the host's, of the instant at which the host saw it.
const (
	MomentCreated  = "guest created"           // the machine, paused; the container's cgroup, or what its engine says; the process's root
	MomentFirst    = "first process runs"      // it said its first byte
	MomentReturned = "engine returned"         // lxc-start has, or the engine's call to start
	MomentHello    = "ruler says hello"        // in the guest
	MomentOrdered  = "work ordered"            // its limits are read back and its network is connected; what is of Tare is over
	MomentLogin    = "login prompt"            // of a whole system, on its console
	MomentAnswer   = "first useful answer"     // a service has answered a request, a function has ended with its result
	MomentRestored = "restored"                // the guest was told to go on, by what restored it
	MomentAgain    = "answer after restore"    // the first that the restored guest gave
	MomentSaved    = "saved"                   // how long saving took: it is no moment of a start
	StateSize      = "size of the saved state" // in MiB: it is no moment at all
	StartTime      = "start-up time"           // the metric: until the login prompt of a whole system, else until the first useful answer
)

// StartMoments are those of a start, RestoreMoments those of a restore, which are counted from the request to restore.
var (
	StartMoments   = []string{MomentCreated, MomentFirst, MomentReturned, MomentHello, MomentOrdered, MomentLogin, MomentAnswer}
	RestoreMoments = []string{MomentRestored, MomentAgain}
)

// Moment is one of a trial's.
type Moment struct {
	Name string `json:"name"`
	NS   int64  `json:"ns"` // nanoseconds of the host's clock since the guest was asked for, or its restore was
}

// Cached says how much of what a start reads was in the host's page cache just before it, as the kernel counts it.
type Cached struct {
	Files    int   `json:"files"`
	Bytes    int64 `json:"bytes"`    // of these files
	Resident int64 `json:"resident"` // of them, in the cache
}

// Start is what a trial saw of one start.
type Start struct {
	Moments       []Moment `json:"moments"`
	Cached        Cached   `json:"cached"`
	Restored      []Moment `json:"restored,omitempty"`
	SavedNS       int64    `json:"saved_ns,omitempty"`
	RestoreCached *Cached  `json:"restore_cached,omitempty"` // just before the restore, the saved state included
	State         int64    `json:"state,omitempty"`          // bytes on disk
	NoSaving      string   `json:"no_saving,omitempty"`      // why this guest cannot be saved and restored
	HowSaved      string   `json:"how_saved,omitempty"`      // by what it was
	WentOn        string   `json:"went_on,omitempty"`        // what proves that the restored guest went on where it was
	Pauses        float64  `json:"asked_each_s,omitempty"`   // seconds between two questions whether it answers: no answer is known more exactly
}

// Metrics are those of a study of starts: of a whole system, or not.
func (s Starting) Metrics() (first Metric, also []Metric) {
	for _, m := range StartMoments {
		also = append(also, Metric{Name: m, Unit: "s"})
	}
	if s.Restore {
		for _, m := range append([]string{MomentSaved}, RestoreMoments...) {
			also = append(also, Metric{Name: m, Unit: "s"})
		}
		also = append(also, Metric{Name: StateSize, Unit: "MiB"})
	}
	return Metric{Name: StartTime, Unit: "s"}, also
}

// Figures are the values of these metrics, as far as they are known.
func (s *Start) Figures() map[string]float64 {
	f := map[string]float64{}
	for _, m := range slices.Concat(s.Moments, s.Restored) {
		f[m.Name] = float64(m.NS) / 1e9
	}
	for _, end := range []string{MomentAnswer, MomentLogin} {
		if v, ok := f[end]; ok {
			f[StartTime] = v
		}
	}
	if s.SavedNS > 0 {
		f[MomentSaved], f[StateSize] = float64(s.SavedNS)/1e9, float64(s.State)/MiB
	}
	return f
}
