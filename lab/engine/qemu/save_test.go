//go:build linux

package qemu_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/lab/engine"
	"tare/lab/engine/qemu"
	"tare/lab/ruler"
	"tare/notebook"
)

// A restored machine goes on where it was: a program that counts in its memory counts on, under the same order, and the moments of its start are in order.
func TestARestoredMachineGoesOn(t *testing.T) {
	for _, k := range []engine.Kind{qemu.VM, qemu.MicroVM} {
		for _, machine := range []string{"", "ram=file"} {
			t.Run(strings.Trim(k.Name+"-"+strings.ReplaceAll(machine, "=", "-"), "-"), func(t *testing.T) {
				t.Parallel()
				testRestored(t, k, machine)
			})
		}
	}
}

func testRestored(t *testing.T, k engine.Kind, machine string) {
	d, s := lab(t, k, program(t), 0, 0)
	s.Machine = machine
	s.Instance.Cores, s.Moments = 1, engine.NewMoments()
	g, err := provision(t, d, s)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range s.Moments.Noted() {
		names = append(names, m.Name)
	}
	if got, want := strings.Join(names, ", "), strings.Join([]string{notebook.MomentCreated, notebook.MomentFirst, notebook.MomentHello}, ", "); got != want {
		t.Errorf("moments of its start: %s; want %s", got, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const last = 40 // which it cannot reach before it is saved
	said := make(chan ruler.Result, 1)
	begun := make(ruler.Begun)
	go func() {
		r, _, err := g.Ruler().Run(ctx, ruler.Order{
			Argv:    []string{"/bin/busybox", "sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; /bin/busybox usleep 20000; done", last)},
			Timeout: 2 * time.Minute, OutputLimit: 1 << 20, Bounds: begun,
		})
		if err != nil {
			t.Errorf("the order that was in progress: %v", err)
		}
		said <- r
	}()
	<-begun
	pid, err := g.Processes()
	if err != nil {
		t.Fatal(err)
	}
	saved, err := g.(engine.Saver).Save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-said:
		t.Fatal("its order had ended when it was saved")
	default:
	}
	if saved.Bytes < 1<<20 {
		t.Errorf("its state is %d bytes", saved.Bytes)
	}
	if left := qemus(t, s.ID); len(left) > 0 {
		t.Errorf("the saved machine's processes %v live on", left)
	}
	m := engine.NewMoments()
	if err := g.(engine.Saver).Restore(ctx, m); err != nil {
		t.Fatal(err)
	}
	if err := m.Wait(ctx, notebook.MomentRestored); err != nil {
		t.Error(err)
	}
	if now, err := g.Processes(); err != nil || now[0] == pid[0] {
		t.Errorf("its process is %v as before (%v)", now, err)
	}
	r := <-said
	counted := strings.Fields(string(r.Stdout))
	for i, n := range counted {
		if n != strconv.Itoa(i+1) {
			t.Fatalf("it counted %q where %d was next", n, i+1)
		}
	}
	if len(counted) != last {
		t.Errorf("it counted to %d: want %d, to which it went on after its restore", len(counted), last)
	}
	if _, err := g.Limits(); err != nil {
		t.Error(err)
	}
}
