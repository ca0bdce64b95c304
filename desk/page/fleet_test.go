package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/fleet"
	"tare/notebook/notebooktest"
)

// fleetReport writes the report of so many simulated hosts, of which host 3 is unlike the others, and returns its file.
func fleetReport(t *testing.T, hosts int) string {
	t.Helper()
	dir := t.TempDir()
	var dirs []string
	for i := range hosts {
		f := notebooktest.Node(i, 0.01)
		if i == 3 {
			f.Mean["cn docker vanilla 2/4GB"] = 1.3
			f.Host.Hostname = "<script>alert(1)</script>\x1b[2J"
		}
		f.Add("cn crun pinned 2/4GB", 1)
		at := filepath.Join(dir, fmt.Sprint(i))
		if err := f.Spill(at); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, at)
	}
	f, err := fleet.Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "report")
	published, err := claims.Shipped("network")
	if err != nil {
		t.Fatal(err)
	}
	files, err := WriteFleet(f, out, f.Judge(published, data.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	return files[0]
}

// The report of a fleet has the answer, a figure of all configurations and one of the hosts of each, and stays small with many hosts.
func TestFleet(t *testing.T) {
	for hosts, most := range map[int]int{1: 100_000, 2: 100_000, 12: 120_000, 1000: 400_000} {
		text, err := os.ReadFile(fleetReport(t, hosts))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > most {
			t.Errorf("%d hosts: the page has %d bytes, more than %d", hosts, len(text), most)
		}
		page := string(text)
		for _, bad := range []string{"<script", "\x1b", "NaN", "Inf"} {
			if strings.Contains(page, bad) {
				t.Errorf("%d hosts: the page has %q", hosts, bad)
			}
		}
		want := []string{"What each environment costs over all hosts", "testable on no host", "crun with a CPU set"}
		if hosts > 1 {
			want = append(want, "Each host: Docker")
		}
		if hosts >= 12 {
			want = append(want, "unlike the other hosts", "&lt;script&gt;", "next host")
		}
		if hosts == 1000 {
			want = append(want, "of 1,000 hosts, sorted")
		}
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%d hosts: the page lacks %q", hosts, w)
			}
		}
	}
}
