//go:build linux

package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/lab/engine"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/network/networktest"
)

// envHold is the environment variable with the holder's orders, as JSON.
const envHold = "TARE_CONFORMANCE_HOLD"

// held is the orders of a process that holds guests and will be killed.
type held struct {
	Subject string      // its name
	Env     engine.Env  // without the journal
	Spec    engine.Spec // without the images; the guests' names begin with its ID
	Ahead   bool        // made but not started
}

// Main runs a package's tests or, in a process that the suite started in order to kill it, holds guests of the subject in the
// environment.
func Main(m *testing.M, subjects ...Subject) {
	told, hold := os.LookupEnv(envHold)
	if !hold {
		os.Exit(m.Run())
	}
	var h held
	err := json.Unmarshal([]byte(told), &h)
	if err == nil {
		err = fmt.Errorf("no subject %s", h.Subject)
	}
	for _, s := range subjects {
		if s.Name == h.Subject {
			err = h.guests(s) // it ends only this way, or killed
		}
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

// guests makes guests, saves and restores them if possible, and ends them, one after the other, until it is killed.
func (h held) guests(s Subject) (err error) {
	if h.Env.Journal, err = journal.Open(h.Env.State); err != nil {
		return err
	}
	driver, err := s.New(h.Env)
	if err != nil {
		return err
	}
	if h.Spec.Image, h.Spec.Work, err = load(filepath.Dir(h.Env.State)); err != nil {
		return err
	}
	ctx := context.Background() // bounded by the kill
	bridge, err := network.Open(ctx, h.Env.Journal)
	if err != nil {
		return err
	}
	fmt.Println("bridge", bridge.Name(), macOf(bridge.Name()))
	spec, err := connected(h.Spec, s.Networks[0], bridge)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		fmt.Println("making")
		spec.ID = fmt.Sprintf("%s-%d", h.Spec.ID, i)
		if s.Saves {
			spec.Moments = engine.NewMoments()
		}
		g, err := h.guest(ctx, driver, spec)
		if err != nil {
			return err
		}
		if s.Saves && !h.Ahead {
			if _, err := g.(engine.Saver).Save(ctx); err != nil {
				return err
			}
			fmt.Println("restoring")
			if err := g.(engine.Saver).Restore(ctx, nil); err != nil {
				return err
			}
		}
		fmt.Println("made")
		if err := g.Destroy(ctx); err != nil {
			return err
		}
		fmt.Println("destroyed")
	}
}

// guest makes a guest, and starts it unless it is only to be made.
func (h held) guest(ctx context.Context, d engine.Driver, s engine.Spec) (interface{ Destroy(context.Context) error }, error) {
	if c, ok := d.(engine.Creator); ok && h.Ahead {
		return c.Create(ctx, s)
	}
	return d.Provision(ctx, s)
}

// macOf is the hardware address of a link; "" if there is none. A bridge of the same name may be another's.
func macOf(link string) string {
	b, err := os.ReadFile("/sys/class/net/" + link + "/address")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// life is what a holder printed until it was killed.
type life struct {
	first       map[string]time.Duration // when it first printed a line, after the first "making"
	said        string                   // the last line
	bridge, mac string
}

// hold runs a process that makes and ends guests, and kills it at a given time after it first prints the line from.
func (r *suite) hold(t *testing.T, h held, from string, after time.Duration) (l life) {
	t.Helper()
	told, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), envHold+"="+string(told))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Whatever happens, the holder does not outlive its turn.
	guard := time.AfterFunc(r.e.patience(30*time.Second), func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	var start time.Time
	l.first = map[string]time.Duration{}
	for lines.Scan() {
		l.said = lines.Text()
		if strings.HasPrefix(l.said, "bridge ") {
			fmt.Sscan(l.said, &l.said, &l.bridge, &l.mac) // this program's own line
			continue
		}
		if start.IsZero() {
			start = time.Now()
		}
		if _, again := l.first[l.said]; again {
			continue
		}
		l.first[l.said] = time.Since(start)
		if l.said == from {
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait() // killed, so its error says nothing new
	if !guard.Stop() {
		t.Errorf("the process that holds guests timed out; its last line was %q", l.said)
	}
	if _, did := l.first[from]; !did || strings.HasPrefix(l.said, "error:") {
		t.Fatalf("the process that was to make guests said %q", l.said)
	}
	return l
}

// killed kills a process that makes and ends guests, at random moments, and lets Recover find what it left.
func (r *suite) killed(t *testing.T) {
	before := r.snapshot(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var whole, restore time.Duration // how long two makings of a guest take, and one restore: measured in the first turn
	for turn := range 1 + r.e.rounds() {
		s := r.spec(t, r.e.Provisionings[0], 1)
		if r.s.RunsHooks && turn%3 == 2 { // it may die while another program runs
			s.Devices = r.describe(t, "usleep", "20000")
		}
		h := held{Subject: r.s.Name, Env: r.env, Spec: s, Ahead: r.s.Ahead && turn%2 == 1}
		h.Env.Journal, h.Spec.Image, h.Spec.Work = nil, nil, nil
		from, after := "making", time.Duration(rnd.Float64()*float64(whole))
		switch {
		case turn == 0: // the first one dies with a complete, live guest
			from, after = "made", 0
		case r.s.Saves && turn%2 == 0: // during a restore other programs work, and they go on when Tare is killed
			from, after = "restoring", time.Duration(rnd.Float64()*float64(restore))
		}
		l := r.hold(t, h, from, after)
		if turn == 0 {
			made := l.first["made"]
			whole = 2 * made
			if began, did := l.first["restoring"]; did {
				restore = made - began
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), r.e.patience(20*time.Second))
		undone, err := journal.Recover(ctx, r.env.State, r.s.Undo)
		cancel()
		if err != nil {
			t.Errorf("recovering after a kill while %q: %v", l.said, err)
		}
		if turn == 0 && len(undone) == 0 {
			t.Error("a process was killed with a guest alive and there was nothing to undo")
		}
		t.Logf("killed after %q: %d changes undone", l.said, len(undone))
		if l.mac == "" || macOf(l.bridge) == l.mac {
			t.Errorf("after a kill and Recover the bridge %s (%s) still exists", l.bridge, l.mac)
		}
		if left := networktest.Deserted(t); len(left) > 0 {
			t.Errorf("after a kill and Recover there are rules of bridges that are gone: %q", left)
		}
		r.nothingRemains(t, before, s.ID)
	}
}
