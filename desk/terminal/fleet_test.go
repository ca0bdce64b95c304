package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/fleet"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// fleetOf writes and reads the folders of so many nodes, after change has changed them.
func fleetOf(t *testing.T, n int, change func(i int, f *notebooktest.Folder)) *fleet.Fleet {
	t.Helper()
	at := t.TempDir()
	for i := range n {
		f := notebooktest.Node(i, 0.01)
		change(i, f)
		if err := f.Spill(filepath.Join(at, fmt.Sprintf("node-%05d", i))); err != nil {
			t.Fatal(err)
		}
	}
	dirs, err := notebook.Folders(at)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func says(t *testing.T, f *fleet.Fleet, width int, want ...string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Fleet(&b, f, false, Screen{Width: width}); err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if !strings.Contains(b.String(), w) {
			t.Errorf("no %q in\n%s", w, b.String())
		}
	}
	return b.String()
}

// TestFleet: the finding comes first, and then what is different about hosts. Everything that does not count is named.
func TestFleet(t *testing.T) {
	f := fleetOf(t, 24, func(i int, f *notebooktest.Folder) {
		f.Add("cn docker pinned 2/4GB", 1)
		vm := notebooktest.Treatment("vm qemu kvm pinned 2/4GB")
		switch {
		case i%2 == 1:
			f.Mean["cn docker vanilla 2/4GB"] *= 1.06
		case i == 4:
			f.Study.LeftOut = []notebook.LeftOut{{Treatment: vm, Reason: notebook.TextMessage("no KVM\x1b[31m")}}
		case i == 6:
			f.Mean["cn docker pinned 2/4GB"] = 1.2
			f.Host.Kernel = "5.10"
		case i == 8:
			f.Host.ID = notebooktest.Node(10, 0).Host.ID
			f.Guest = func(g *notebook.Guest) { g.ID += "-8" }
		case i == 12:
			f.Study.Name = "other"
		case i == 14:
			f.Host.Virtualization, f.Rounds = "KVM", 5
		case i == 16:
			f.Trial = func(x *notebook.Trial) {
				if x.Treatment == "cn docker pinned 2/4GB" && x.Index < 2 {
					x.Failure = notebook.TextMessage("it failed")
				}
			}
		}
	})
	said := says(t, f, 200,
		"Over 22 hosts, Docker with --cpus is slower than bare metal: +",
		" on the next host.",
		"Over 21 hosts, Docker with --cpuset-cpus ",
		"node-00006 is unlike the other hosts.",
		"quick, 22 hosts. Changes are of costs relative to bare metal; higher is worse. All lines are of ffmpeg, 2 CPUs, 4 GB, execution time.",
		"configuration", "mean over hosts", "host to host", "at ±1 %",
		"21 of 22", "1 failed",
		"CPU model  AMD EPYC 7713 (12), AMD EPYC 9354 (10)",
		"Classes of hosts that differ", "Docker, CPU quota (--cpus), by CPU model: AMD EPYC 9354: +", "12 hosts (p ", "of the variance between hosts).",
		"! node-00006: Docker, CPU set (--cpuset-cpus) +2", "; the other hosts ", "Unusual there: kernel 5.10 (1 of 22 hosts)",
		"node-00008 and node-00010 are one machine.",
		"it holds the study other; most folders hold another study.",
		"VM, CPU set, 2 CPUs, 4 GB: missing on 1 host. On node-00004: no KVM",
		"1 of the hosts is a virtual machine", "1 host has fewer rounds than the study asks for.", "1 result is left out: more than a tenth of the runs failed, or a whole round failed.",
	)
	if strings.ContainsRune(said, '\x1b') {
		t.Error("a control character reached the terminal")
	}
	for _, line := range strings.Split(says(t, f, 80, "configuration · hosts · mean over hosts", "Docker, CPU quota (--cpus) · 22 · +"), "\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestFleetOfFewHosts: one host and two give honest answers.
func TestFleetOfFewHosts(t *testing.T) {
	nothing := func(int, *notebooktest.Folder) {}
	says(t, fleetOf(t, 1, nothing), 0, "On node-00000, the only host, Docker with --cpus ", "One host does not show how much hosts differ.")
	said := says(t, fleetOf(t, 2, nothing), 0, "Over 2 hosts, Docker with --cpus ", "nothing about the next host.")
	if strings.Contains(said, "on the next host.") {
		t.Error(said)
	}
	says(t, fleetOf(t, 5, nothing), 0, " on the next host.", "Only 5 hosts: the interval of the next host is wide and uncertain.")
	says(t, fleetOf(t, 2, func(_ int, f *notebooktest.Folder) { f.Rounds = 0 }), 0, "No host has a cost relative to bare metal.")
	says(t, fleetOf(t, 3, func(i int, f *notebooktest.Folder) { f.Rounds = 1 }), 0, "3 results have no interval", "No host has a cost")
}

// TestFleetStaysReadable: whatever is wrong with whichever of a thousand hosts, the answer has less than sixty lines.
func TestFleetStaysReadable(t *testing.T) {
	f := fleetOf(t, 1000, func(i int, f *notebooktest.Folder) {
		f.Rounds, f.Study.Design.Floor, f.Study.Design.Cap, f.Study.Design.Trials = 2, 2, 2, 1
		f.Host.Kernel = fmt.Sprint("6.", i%40)
		f.Host.CPUModel = fmt.Sprint("model ", i%20)
		f.Study.Images["ffmpeg"] = notebook.Image{Digest: fmt.Sprint("sha256:", i%5)}
		for _, words := range []string{"cn docker pinned 2/4GB", "cn crun vanilla 2/4GB", "cn crun pinned 2/4GB", "vm qemu kvm pinned 2/4GB"} {
			f.Add(words, 1+0.05*float64(i%20)+0.2*math.Floor(float64(i%50)/49))
		}
		if i%30 == 7 {
			f.Study.Name = "other"
		}
		if i%30 == 8 {
			f.Host.ID = fmt.Sprint(i % 60)
			f.Guest = func(g *notebook.Guest) { g.ID += fmt.Sprint(i) }
		}
		f.Study.LeftOut = []notebook.LeftOut{{Treatment: notebooktest.Treatment(fmt.Sprintf("vm qemu kvm pinned %d/4GB", 4+i%9)), Reason: notebook.TextMessage("no KVM")}}
	})
	said := says(t, f, 0, "more nodes are one machine", "classes between these", "more folders: see --format json")
	if lines := strings.Count(said, "\n"); lines >= 60 {
		t.Errorf("%d lines:\n%s", lines, said)
	}
}

// TestUnreadableFolders: a folder that is cut off, of a newer Tare, or changed is named, and the others count.
func TestUnreadableFolders(t *testing.T) {
	at := t.TempDir()
	for i := range 6 {
		dir := filepath.Join(at, fmt.Sprint("n", i))
		if err := notebooktest.Node(i, 0.01).Spill(dir); err != nil {
			t.Fatal(err)
		}
		var err error
		switch i {
		case 1:
			err = os.Remove(filepath.Join(dir, "host.json"))
		case 2:
			err = os.WriteFile(filepath.Join(dir, "study.json"), []byte(`{"version":99}`), 0o644)
		case 3: // a run that was killed in the middle of a line goes on, and its folder counts
			err = errors.Join(os.Truncate(filepath.Join(dir, "trials.jsonl"), 10_000), os.Truncate(filepath.Join(dir, "guests.jsonl"), 4000))
		case 4:
			err = os.WriteFile(filepath.Join(dir, "trials.jsonl"), []byte("{\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dirs, err := notebook.Folders(at)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	says(t, f, 0, "Over 3 hosts", "n1 is not a whole results folder", "n2/study.json: written by a newer Tare", "n4/trials.jsonl:1: not a trial", "1 host has fewer rounds")
}
