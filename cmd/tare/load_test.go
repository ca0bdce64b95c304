//go:build linux

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/desk/words"
	"tare/lab/network/networktest"
	"tare/lab/remote/remotetest"
	"tare/notebook"
)

// TestALoadFromAnotherMachine: the load of a user's own service runs on another machine, whose ssh server is killed in the middle.
func TestALoadFromAnotherMachine(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	m := remotetest.New(t)
	h.shop()
	h.write("shop/workload.yaml", strings.Replace(shop, `command: ["{work}/shop", ask, "{address}", "{port}", "20",`,
		`command: [busybox, sh, -c, "sleep 0.5; exec \"$0\" \"$@\"", "{work}/shop", ask, "{address}", "{port}", "200",`, 1)) // long enough to be seen
	h.write("study.yaml", `name: away
workloads: [{name: ./shop}]
platforms:
  - platform: bm
  - {platform: cn, engines: [crun], provisioning: [pinned], networks: [bridge, host]}
instances: [1/1GB]
load_from: ssh://root@`+m.Address+`
design: {rounds: {floor: 2, cap: 2}, trials: 1, warmups: 0, timeout: 1m}
`)
	done := make(chan struct{})
	var errs string
	var status int
	go func() {
		defer close(done)
		_, errs, status = h.run("run", "./study.yaml", "--out", "R", "--seed", "1")
	}()
	// In the middle of the first trial: the rehearsal is over when there is a folder.
	for killed := false; !killed; {
		select {
		case <-done:
			t.Fatalf("it ended before a load was seen: %d, %s", status, errs)
		case <-time.After(5 * time.Millisecond):
		}
		if !notebook.Exists(filepath.Join(h.dir, "R")) {
			continue
		}
		killed = slices.ContainsFunc(m.Processes(), func(cmd string) bool { return strings.Contains(cmd, " 200 ") })
	}
	m.Kill()
	m.Serve()
	<-done
	if status != 1 || !strings.Contains(errs, "1 runs failed") {
		t.Errorf("exit status %d: %s", status, errs)
	}
	failed, networks := 0, map[string]bool{}
	all := h.trials("R")
	for _, tr := range all {
		networks[tr.Treatment] = true
		if tr.Failure != nil {
			failed++
			if said := words.Message(tr.Failure); !strings.Contains(said, "the connection was lost: ") {
				t.Errorf("%s failed: %s", tr.Treatment, said)
			}
			continue
		}
		if l := tr.Load; l == nil || l.From != "ssh://root@"+m.Address || len(l.CPUs) == 0 || l.Shared || l.UserS+l.SystemS <= 0 || l.AheadBoundS <= 0 || l.AheadBoundS > 1 || l.AheadS > 1 || l.AheadS < -1 {
			t.Errorf("%s: load %+v", tr.Treatment, l)
		}
		if tr.Figures["requests"] != 200 || tr.ElapsedS <= 0 || !strings.Contains(strings.Join(tr.Command, " "), m.Here) {
			t.Errorf("trial %+v", tr)
		}
	}
	if len(all) != 8 || failed != 1 || len(networks) != 4 {
		t.Errorf("%d trials of %d treatments, %d failed; want 8 of 4, and 1: %s", len(all), len(networks), failed, errs)
	}
	m.Empty()
	own := regexp.MustCompile(`\b(` + regexp.QuoteMeta(m.Here) + "|" + regexp.QuoteMeta(m.Address) + `)\b`)
	left := slices.DeleteFunc(strings.Split(m.Must("iptables-save"), "\n"), func(rule string) bool { return !own.MatchString(rule) })
	if left = append(left, networktest.Deserted(t)...); len(left) > 0 {
		t.Errorf("of the host's rules these are left: %q", left)
	}

	m.As("stranger")
	_, errs, status = h.run("run", "./study.yaml", "--out", "S")
	if status != 1 || strings.Count(strings.TrimSpace(errs), "\n") > 1 || !strings.Contains(errs, "Permission denied") || !strings.Contains(errs, "without a question") {
		t.Errorf("with a key that is refused: %d, %s", status, errs)
	}
}
