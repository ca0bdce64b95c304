package notebook

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// What a neighbour does.
const (
	BusyCPU  = "cpu"  // it computes on as many CPUs as it has cores
	BusyIO   = "io"   // it writes to its disk and syncs
	BusyWork = "work" // it runs the measured guest's work at its greatest length
)

// Busy are all of these.
var Busy = []string{BusyCPU, BusyIO, BusyWork}

// MostNeighbours is the greatest number of neighbours of a guest.
const MostNeighbours = 1000

// Neighbours are busy guests of the same treatment, next to the measured guest (paper "virtualization-overheads", chapter 4). A study uses
// exactly one of two ways: a number of each kind, or as many of one kind as fill the host.
type Neighbours struct {
	CPU, IO int // on the measured guest's CPUs, where these are its own
	Work    int // on CPUs of their own, while there are any: they share something else, a device

	// PerCore is how many guests there are on each of the host's CPUs, including the measured one. The others do what Busy says, and are
	// spread over all CPUs.
	PerCore int
	Busy    string
}

// None says that there are none.
func (n Neighbours) None() bool { return n == Neighbours{} }

// Text is what ParseNeighbours reads: "none", "cpu:1+io:2", "cpu:4/core".
func (n Neighbours) Text() string {
	var parts []string
	for _, k := range []struct {
		busy string
		n    int
	}{{BusyCPU, n.CPU}, {BusyIO, n.IO}, {BusyWork, n.Work}} {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%s:%d", k.busy, k.n))
		}
	}
	switch {
	case n.PerCore > 0:
		return fmt.Sprintf("%s:%d/core", n.Busy, n.PerCore)
	case parts == nil:
		return "none"
	}
	return strings.Join(parts, "+")
}

// neighbourOK is compiled when it is first used, as instanceSize is.
var neighbourOK = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(cpu|io|work):([0-9]{1,4})(/core)?$`) })

// ParseNeighbours reads what Neighbours.Text writes.
func ParseNeighbours(text string) (n Neighbours, err error) {
	wrong := fmt.Errorf("%q: must be none, cpu:N, io:N or work:N, several joined with \"+\" (cpu:1+io:1), or one kind that fills the host (cpu:N/core); N is 0 to %d", text, MostNeighbours)
	if text == "none" {
		return n, nil
	}
	parts := strings.Split(text, "+")
	seen := map[string]bool{}
	for _, part := range parts {
		m := neighbourOK().FindStringSubmatch(part)
		if m == nil || seen[m[1]] || m[3] != "" && len(parts) > 1 {
			return Neighbours{}, wrong
		}
		seen[m[1]] = true
		count, _ := strconv.Atoi(m[2]) // the expression allows only four digits
		switch {
		case count > MostNeighbours || m[3] != "" && count == 0:
			return Neighbours{}, wrong
		case m[3] != "":
			n.PerCore, n.Busy = count, m[1]
		case m[1] == BusyCPU:
			n.CPU = count
		case m[1] == BusyWork:
			n.Work = count
		default:
			n.IO = count
		}
	}
	return n, nil
}

// NeighboursOf returns the neighbours of a treatment's guest. An invalid text means none.
func NeighboursOf(t Treatment) Neighbours {
	n, err := ParseNeighbours(FactorNeighbours.Of(t))
	if err != nil {
		return Neighbours{}
	}
	return n
}

// Kinds lists what each neighbour does, on a host where so many guests have CPUs of their own at once.
func (n Neighbours) Kinds(seats int) []string {
	if n.PerCore > 0 {
		return slices.Repeat([]string{n.Busy}, max(n.PerCore*seats-1, 0))
	}
	return slices.Concat(slices.Repeat([]string{BusyCPU}, n.CPU), slices.Repeat([]string{BusyIO}, n.IO), slices.Repeat([]string{BusyWork}, n.Work))
}

// NeighbourActivity is what a guest's neighbours did during a trial, as the host's kernel counts, and what the guest itself did.
type NeighbourActivity struct {
	OfS        float64     `json:"of_s"`  // seconds from before the trial to after it
	OwnS       float64     `json:"own_s"` // CPU time that the measured guest ran
	Neighbours []Neighbour `json:"neighbours"`
}

// Neighbour is one of them.
type Neighbour struct {
	Busy    string   `json:"busy"`           // one of Busy
	Seat    int      `json:"seat"`           // the CPUs that it has, where they are its own: 0 are the measured guest's
	RanS    float64  `json:"ran_s"`          // CPU time
	WaitedS float64  `json:"waited_s"`       // that it was ready to run and another ran, of all its threads
	Moved   int64    `json:"moved"`          // bytes, to and from disks
	Idle    *Message `json:"idle,omitempty"` // why it does not count as busy
}

// The secondary metrics of a study whose guests have neighbours.
var (
	OwnShare = Metric{Name: "own_share", Unit: "1"} // CPU time of the measured guest over the mean of its neighbours', except those that are busy with I/O
	Fairness = Metric{Name: "fairness", Unit: "1"}  // of neighbours that are busy alike: (Σx)²/(n Σx²) of their CPU times, or of their bytes (Jain); 1: all have the same
)

// Figures are those of the neighbours' secondary metrics that are known.
func (c *NeighbourActivity) Figures() map[string]float64 {
	f := map[string]float64{}
	if c == nil {
		return f
	}
	var ran, moved []float64
	for _, n := range c.Neighbours {
		if n.Busy != BusyIO {
			ran = append(ran, n.RanS)
		} else {
			moved = append(moved, float64(n.Moved))
		}
	}
	if sum := total(ran); sum > 0 {
		f[OwnShare.Name] = c.OwnS / (sum / float64(len(ran)))
	}
	of := ran
	if len(of) < 2 {
		of = moved
	}
	squares := 0.0
	for _, x := range of {
		squares += x * x
	}
	if sum := total(of); len(of) > 1 && squares > 0 {
		f[Fairness.Name] = sum * sum / (float64(len(of)) * squares)
	}
	return f
}

func total(of []float64) (sum float64) {
	for _, x := range of {
		sum += x
	}
	return sum
}
