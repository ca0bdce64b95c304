//go:build linux

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/notebook"
	"tare/notebook/notebooktest"
)

// recorded is what scontrol of Slurm 22.05 prints, shortened; the last line has a reason that looks like other values.
const recorded = `NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUTot=2 ActiveFeatures=small,fast Gres=(null) NodeHostName=vm OS=Linux 6.18.44 #1 SMP  State=IDLE ThreadsPerCore=1 Partitions=all,other  BootTime=2026-11-30T07:50:15
NodeName=n2 Arch=x86_64 ActiveFeatures=(null) State=MIXED+PLANNED Partitions=all
NodeName=n3 ActiveFeatures=(null) State=DOWN* Partitions=all Reason=Not responding [slurm@2026-11-30]
NodeName=n4 Arch=aarch64 ActiveFeatures=fast State=ALLOCATED Partitions=all
NodeName=n5 Arch=x86_64 ActiveFeatures=fast State=IDLE Partitions=other
NodeName=n6 Arch=x86_64 ActiveFeatures=fast State=IDLE+DRAIN Partitions=all Reason=State=IDLE Partitions=other NodeName=n7 [root@now]
NodeName=n8 Arch=x86_64 ActiveFeatures=fast State=IDLE* Partitions=all
`

func TestNodesOfSlurm(t *testing.T) {
	names := func(nodes []Node) (all []string) {
		for _, n := range nodes {
			all = append(all, strings.TrimSpace(n.Name+" "+n.Why))
		}
		return all
	}
	all := parseNodes(recorded, "all", nil)
	if got, want := names(all), []string{"n1", "n2", "n3 its state is DOWN*", "n4", "n6 its state is IDLE+DRAIN", "n8 its state is IDLE*"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := names(parseNodes(recorded, "other", []string{"fast"})), []string{"n1", "n5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := parseNodes(recorded, "all", []string{"small", "fast"}); got[0].Why != "" || got[1].Why != "it lacks the feature small" {
		t.Errorf("features: %+v", got)
	}
	defer func(was string) { arch = was }(arch)
	arch = "x86_64"
	chosen, left := Choose(append(all, Node{Name: "../n"}), 0)
	if got := names(chosen); !slices.Equal(got, []string{"n1", "n2"}) || len(left) != 5 || !strings.Contains(left[0].Why, "not the name of a node") {
		t.Errorf("chosen %q, left %+v", got, left)
	}
}

// Of many nodes a sample is taken that is not always the same.
func TestChooseSamples(t *testing.T) {
	var nodes []Node
	for i := range 100 {
		nodes = append(nodes, Node{Name: fmt.Sprintf("n%03d", i)})
	}
	samples := map[string]bool{}
	for range 10 {
		chosen, left := Choose(nodes, 10)
		if len(chosen) != 10 || len(left) != 90 || !slices.IsSortedFunc(chosen, func(a, b Node) int { return strings.Compare(a.Name, b.Name) }) {
			t.Fatalf("%d chosen, %d left: %+v", len(chosen), len(left), chosen)
		}
		samples[fmt.Sprint(chosen)] = true
	}
	if len(samples) < 2 {
		t.Error("ten samples of ten of a hundred nodes are the same")
	}
}

func TestJobsOfSlurm(t *testing.T) {
	got := parseJobs("1|RUNNING|n1|None\n2|PENDING|n2|Resources\n3|COMPLETING|n3|None\n4|PENDING|n3|BeginTime\ndamaged\n5|PENDING|n4|a | b\n")
	want := map[string]Job{"n1": {ID: "1", Running: true}, "n2": {ID: "2", Why: "Resources"}, "n3": {ID: "4", Why: "BeginTime"}, "n4": {ID: "5", Why: "a | b"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOptionsOfSbatch(t *testing.T) {
	for _, ok := range []string{"--account=x", "-Ax", "--time=10", "-t10", "--qos=high"} {
		if err := (Slurm{}).CheckOptions([]string{ok}); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, bad := range []string{"--array=1-3", "-a1-3", "-w", "-wn1", "--nodelist=n1", "script.sh", "--output", "-N2", "--nodel=n2", "-Hwn2", "-Fx", "--test-only", "-W", "--clusters=x", "--mem=1G", "--no-requeue",
		"--account", "account=x", "-", "--", "", "-A", "Ax"} {
		if err := (Slurm{}).CheckOptions([]string{bad}); err == nil {
			t.Errorf("%s is allowed", bad)
		}
	}
}

func FuzzSlurm(f *testing.F) {
	f.Add(recorded)
	f.Add("1|RUNNING|n1|None\n")
	f.Fuzz(func(t *testing.T, text string) {
		Choose(parseNodes(text, "all", []string{"fast"}), 1)
		parseJobs(text)
	})
}

// A node's state comes from the scheduler, the task and the results together.
func TestStatuses(t *testing.T) {
	dir := t.TempDir()
	f := &notebook.Fleet{ID: "tare-1", Study: "quick", Nodes: []string{"a", "b", "c", "d", "e", "f", "g", "h"}}
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	for node, task := range map[string]notebook.FleetTask{
		"c": {State: notebook.TaskWaits, Since: at, Job: "3"},
		"d": {State: notebook.TaskMeasures, Since: at, Job: "4"},
		"e": {State: notebook.TaskMeasures, Since: at, Job: "5"},
		"f": {State: notebook.TaskDone, Since: at, Said: "2 runs failed"},
		"g": {State: notebook.TaskFailed, Since: at, Said: "no root"},
		"h": {State: notebook.TaskFailed, Since: at, Job: "7", Said: "no root"},
	} {
		if err := notebook.WriteTask(dir, node, task); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range []string{"d", "f"} {
		if err := notebooktest.Night(1).Add("bm 1/1GB", 1).WriteTo(notebook.NodeResults(dir, node)); err != nil {
			t.Fatal(err)
		}
	}
	jobs := map[string]Job{"a": {ID: "1", Why: "Resources"}, "c": {ID: "3", Running: true}, "d": {ID: "4", Running: true}, "h": {ID: "8", Running: true}}
	want := []State{Queued, Lost, Waiting, Measuring, Stopped, Done, Failed, Starting}
	for i, s := range Statuses(dir, f, jobs) {
		if s.State != want[i] {
			t.Errorf("%s is %s, want %s: %+v", s.Node, s.State, want[i], s)
		}
		if same := map[string]string{"f": "d"}[s.Node]; s.SameAs != same {
			t.Errorf("%s is the same host as %q, want %q", s.Node, s.SameAs, same)
		}
		if measured := s.Node == "d" || s.Node == "f"; measured != (s.Runs > 0 && s.Rounds > 0) {
			t.Errorf("%s has %d runs in %d rounds", s.Node, s.Runs, s.Rounds)
		}
	}
	want = []State{Starting, Starting, Waiting, Measuring, Measuring, Done, Failed, Failed}
	for i, s := range Statuses(dir, f, nil) { // only the tasks themselves know
		if s.State != want[i] {
			t.Errorf("without the scheduler %s is %s, want %s", s.Node, s.State, want[i])
		}
	}
	jobs["f"], jobs["e"] = Job{ID: "6", Running: true, Ending: true}, Job{ID: "5", Running: true, Ending: true}
	if got := Statuses(dir, f, jobs); got[5].State != Done || got[4].State != Stopped {
		t.Errorf("while the scheduler tidies up: %s and %s", got[5].State, got[4].State)
	}
	delete(jobs, "f")
	delete(jobs, "e")
	if err := os.WriteFile(filepath.Join(notebook.NodeDir(dir, "c"), "task.json"), []byte(`{"state":"\u001b[2J"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Statuses(dir, f, jobs)[2]; got.State != Failed || !strings.Contains(got.Said, "which no task has") {
		t.Errorf("a damaged task.json: %+v", got)
	}
}

func TestMake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "F")
	f := &notebook.Fleet{ID: "tare-1", Study: "mine", Nodes: []string{"n1"}}
	if err := Make(dir, f, []byte("name: mine\n")); err != nil {
		t.Fatal(err)
	}
	got, err := notebook.ReadFleet(dir)
	if err != nil || got.Nodes[0] != "n1" {
		t.Fatalf("%+v, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "tare")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program: %v, %v", info, err)
	}
	other := filepath.Join(t.TempDir(), "full")
	if err := os.MkdirAll(filepath.Join(other, "photos"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Make(other, f, nil); err == nil || !strings.Contains(err.Error(), `"photos"`) {
		t.Errorf("a folder with other files: %v", err)
	}
}
