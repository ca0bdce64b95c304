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

// killed kills a process that makes and ends guests, at random moments, and lets Recover find what it left.
func (r *suite) killed(t *testing.T) {
	before := r.snapshot(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var whole time.Duration // from the first "making" to "destroyed", learned in the first turn
	for turn := range 1 + r.e.rounds() {
		s := r.spec(t, r.e.Provisionings[0], 1)
		if r.s.RunsHooks && turn%3 == 2 { // it may die while another program runs
			s.Devices = r.describe(t, "usleep", "20000")
		}
		h := held{Subject: r.s.Name, Env: r.env, Spec: s, Ahead: r.s.Ahead && turn%2 == 1}
		h.Env.Journal, h.Spec.Image, h.Spec.Work = nil, nil, nil
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
		said, bridge, mac := "", "", ""
		for lines.Scan() {
			said = lines.Text()
			switch {
			case strings.HasPrefix(said, "bridge "):
				fmt.Sscan(said, &said, &bridge, &mac) // this program's own line
			case said == "making" && start.IsZero():
				start = time.Now()
				if turn > 0 {
					time.AfterFunc(time.Duration(rnd.Float64()*float64(whole)), func() { cmd.Process.Kill() })
				}
			case said == "made" && turn == 0:
				// The first one dies with a complete, live guest.
				whole = 2 * time.Since(start)
				cmd.Process.Kill()
			}
		}
		cmd.Wait() // killed, so its error says nothing new
		if !guard.Stop() {
			t.Errorf("the process that holds guests did not get on; it last said %q", said)
		}
		if start.IsZero() || (turn == 0 && whole == 0) || len(said) > 6 && said[:6] == "error:" {
			t.Fatalf("the process that was to make guests said %q", said)
		}
		ctx, cancel := context.WithTimeout(context.Background(), r.e.patience(20*time.Second))
		undone, err := journal.Recover(ctx, r.env.State, r.s.Undo)
		cancel()
		if err != nil {
			t.Errorf("recovering after a kill while %q: %v", said, err)
		}
		if turn == 0 && len(undone) == 0 {
			t.Error("a process was killed with a guest alive and there was nothing to undo")
		}
		t.Logf("killed after %q: %d changes undone", said, len(undone))
		if mac == "" || macOf(bridge) == mac {
			t.Errorf("after a kill and Recover the bridge %s (%s) still exists", bridge, mac)
		}
		if left := networktest.Deserted(t); len(left) > 0 {
			t.Errorf("after a kill and Recover there are rules of bridges that are gone: %q", left)
		}
		r.nothingRemains(t, before, s.ID)
	}
}
