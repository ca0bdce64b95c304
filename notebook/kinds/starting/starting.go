// Package starting holds the configuration and the records of a study of the kind "starting": how long a guest takes from the
// request to its first useful answer (paper "virtualization-overheads", chapter 5).
package starting

import (
	"slices"

	"tare/notebook"
)

// Name is the name of the kind.
const Name = "starting"

// Seen is what a trial recorded.
type Seen struct {
	Startup *Start `json:"startup,omitempty"`
}

// Config is how a study times the starts of guests (paper "virtualization-overheads", chapter 5). A trial requests one guest,
// brings it to its first useful answer and destroys it.
type Config struct {
	Caches    []string    `json:"caches"`            // of Caches; each makes a treatment
	Restore   bool        `json:"restore,omitempty"` // whether the guest is also saved and restored
	Published []Published `json:"published,omitempty"`
}

// Published is a paper's times for one kind of guest.
type Published struct {
	Name     string  `json:"name" yaml:"name" jsonschema:"required"`       // the paper's name for it
	Moment   string  `json:"moment,omitempty" yaml:"moment,omitempty"`     // what the paper calls the end of a start
	StartS   float64 `json:"start_s" yaml:"start" jsonschema:"required"`   // seconds
	RestoreS float64 `json:"restore_s,omitempty" yaml:"restore,omitempty"` // seconds; 0: none
}

// Allowed are the values that some keys of a study file may have.
func (Published) Allowed() map[string][]string {
	return map[string][]string{"moment": notebook.StartMoments}
}

// Start is what a trial saw of one start.
type Start struct {
	Moments       []notebook.Moment `json:"moments"`
	Cached        notebook.Cached   `json:"cached"`
	Restored      []notebook.Moment `json:"restored,omitempty"`
	SavedNS       int64             `json:"saved_ns,omitempty"`
	RestoreCached *notebook.Cached  `json:"restore_cached,omitempty"` // just before the restore; it includes the saved state
	State         int64             `json:"state,omitempty"`          // bytes on disk
	NoSaving      *notebook.Message `json:"no_saving,omitempty"`      // why this guest cannot be saved and restored
	HowSaved      *notebook.Message `json:"how_saved,omitempty"`      // how: the mechanism that saved it
	WentOn        *notebook.Message `json:"went_on,omitempty"`        // proof: the restored guest continued where it was
	Pauses        float64           `json:"asked_each_s,omitempty"`   // seconds between two questions whether it answers: the resolution of the answer's moment
}

// Metrics are the metric and the secondary metrics of a study of starts.
func (s Config) Metrics() (first notebook.Metric, also []notebook.Metric) {
	for _, m := range append(slices.Clone(notebook.StartMoments), AsPublished) {
		also = append(also, notebook.Metric{Name: m, Unit: "s"})
	}
	if s.Restore {
		for _, m := range append([]string{MomentSaved, RestoredOrStarted}, notebook.RestoreMoments...) {
			also = append(also, notebook.Metric{Name: m, Unit: "s"})
		}
		also = append(also, notebook.Metric{Name: StateSize, Unit: "MiB"})
	}
	return notebook.Metric{Name: Time, Unit: "s"}, also
}

// Figures are the values of these metrics, as far as they are known.
func (s *Start) Figures() map[string]float64 {
	f := map[string]float64{}
	for _, m := range slices.Concat(s.Moments, s.Restored) {
		f[m.Name] = float64(m.NS) / 1e9
	}
	until := func(figure string, ends ...string) { // the last of these moments that the start has
		for _, end := range ends {
			if v, ok := f[end]; ok {
				f[figure] = v
			}
		}
	}
	until(Time, notebook.MomentAnswer, notebook.MomentLogin)
	until(AsPublished, notebook.MomentAnswer, notebook.MomentLogin, notebook.MomentReturned)
	if len(s.Restored) > 0 || s.NoSaving != nil { // the study restores guests that can be saved
		until(RestoredOrStarted, notebook.MomentRestored, notebook.MomentReturned)
	}
	if s.SavedNS > 0 {
		f[MomentSaved], f[StateSize] = float64(s.SavedNS)/1e9, float64(s.State)/notebook.MiB
	}
	return f
}

// Further figures of a study of starts, in addition to moments.
const (
	MomentSaved = "saved"              // how long saving took
	StateSize   = "state_size"         // in MiB
	AsPublished = "start_as_published" // until the moment that Table 5.1 of the paper uses: lxc-start, or another engine, has returned; a VM's login prompt
	Time        = "start_up_time"      // the metric: until the login prompt of a whole system, otherwise until the first useful answer

	// RestoredOrStarted is what chapter 5 of the paper compares: until a VM is restored, and until lxc-start, or another engine, has returned from a start.
	RestoredOrStarted = "restored_or_started"
)
