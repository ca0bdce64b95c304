package studyfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/notebook"
	"tare/yamlfile"
)

// Design is the experiment's design as written in a study file.
type Design struct {
	Rounds    Rounds `yaml:"rounds"`
	Precision string `yaml:"precision,omitempty"` // "3%": stop when every ratio is known to ± this share; empty: run to the cap
	Margin    string `yaml:"margin,omitempty"`    // "5%": the smallest difference that matters. It decides the length of the study and its answer; empty: 1%
	Trials    int    `yaml:"trials"`
	Warmups   int    `yaml:"warmups"`
	Timeout   string `yaml:"timeout"` // the longest time of one trial

	// Order is interleaved or sequential. Interleaved guests live at the same time and do their trials in random turns. Sequential guests
	// follow each other. Empty: interleaved, unless guests would disturb each other, as virtual machines with timers do.
	Order string `yaml:"order,omitempty"`
}

// Allowed implements yamlfile.Limited.
func (Design) Allowed() map[string][]string { return map[string][]string{"order": notebook.Orders} }

// Rounds are the least and the greatest number of rounds of each treatment.
type Rounds struct {
	Floor    int `yaml:"floor"`
	Cap      int `yaml:"cap"`
	Emulated int `yaml:"emulated,omitempty"` // rounds of emulated VMs, which are never ranked; default: floor
}

// UnmarshalYAML reads the keys, or one number that is both the floor and the cap.
func (r *Rounds) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		fixed, err := strconv.Atoi(n.Value)
		if err != nil || fixed < 1 { // a zero in the mapping stands for the default
			return &yamlfile.PartError{Line: n.Line, Text: fmt.Sprintf("rounds: %q: must be a number from 1 to %d, or {floor: NUMBER, cap: NUMBER}", n.Value, MostRounds)}
		}
		*r = Rounds{Floor: fixed, Cap: fixed}
		return nil
	}
	type keys Rounds // without this method, which would call itself
	return yamlfile.DecodePart(n, (*keys)(r))
}

// MostRounds is the upper limit on rounds, trials and warm-ups.
const MostRounds = 100_000

func (d Design) parse() (notebook.Design, *problem) {
	out := notebook.Design{Floor: d.Rounds.Floor, Cap: d.Rounds.Cap, Emulated: d.Rounds.Emulated, Trials: d.Trials, Warmups: d.Warmups}
	for _, n := range []struct {
		keys      []string
		value, lo int
	}{
		{[]string{"rounds", "floor"}, out.Floor, 1}, {[]string{"rounds", "cap"}, out.Cap, out.Floor}, {[]string{"rounds", "emulated"}, out.Emulated, 1},
		{[]string{"trials"}, out.Trials, 1}, {[]string{"warmups"}, out.Warmups, 0},
	} {
		if n.value < n.lo || n.value > MostRounds {
			return out, wrong(fmt.Sprintf("design: %s: %d: must be from %d to %d", strings.Join(n.keys, ": "), n.value, n.lo, MostRounds), n.keys[0])
		}
	}
	t, err := time.ParseDuration(d.Timeout)
	if err != nil || t < time.Second || t > 7*24*time.Hour {
		return out, wrong(fmt.Sprintf("design: timeout: %q: must be a time from 1s to 168h, such as 90s or 10m", d.Timeout), "timeout")
	}
	out.TimeoutS, out.Order = t.Seconds(), d.Order
	if key, value, allowed := yamlfile.Refused(d); key != "" {
		return out, wrong(fmt.Sprintf("design: %s: %q: must be %s", key, value, strings.Join(allowed, " or ")), key)
	}
	if d.Precision != "" {
		if out.Precision, err = yamlfile.Share(d.Precision); err != nil {
			return out, wrong("design: precision: "+err.Error(), "precision")
		}
	}
	if d.Margin != "" {
		if out.Margin, err = yamlfile.Share(d.Margin); err != nil {
			return out, wrong("design: margin: "+err.Error(), "margin")
		}
	}
	return out, nil
}
