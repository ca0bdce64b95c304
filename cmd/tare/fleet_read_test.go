package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/schemas"
)

// someFleet is the folder of a fleet of so many nodes. The first has no KVM, the second is a copy of it under another name, the third an outlier.
func someFleet(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	of := &notebook.Fleet{ID: "tare-1", Study: "quick", By: "ssh"}
	for i := range n {
		f := notebooktest.Node(i, 0.005)
		f.Add("cn docker pinned 2/4GB", 1)
		f.Study.Also = map[string][]notebook.Metric{"ffmpeg": {{Name: "frames", Unit: "1/s", Better: notebook.Higher}}}
		f.Trial = func(x *notebook.Trial) { x.Figures = map[string]float64{"frames": 100 / x.Value} }
		switch i {
		case 0:
			f.Study.LeftOut = []notebook.LeftOut{{Treatment: notebooktest.Treatment("vm qemu kvm pinned 2/4GB"), Reason: notebook.TextMessage("no KVM")}}
		case 1:
			f.Host.ID = notebooktest.Node(0, 0).Host.ID
			f.Guest = func(g *notebook.Guest) { g.ID += "-1" }
		case 2:
			f.Mean["cn docker pinned 2/4GB"] = 1.3
			f.Host.Kernel = "5.10"
		case 3:
			f.Study.Name = "other"
		}
		name := fmt.Sprintf("node-%d", i)
		of.Nodes = append(of.Nodes, name)
		if err := f.Spill(notebook.NodeResults(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := of.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSummaryOfAFleet: the table, the JSON and the CSV of a fleet, and of a folder of results folders.
func TestSummaryOfAFleet(t *testing.T) {
	dir := someFleet(t, 20)
	table := string(printed(t, "summary "+dir))
	if !strings.Contains(table, "Over 18 hosts, Docker with --cpus is slower") || string(printed(t, "summary "+filepath.Join(dir, "nodes"))) == table {
		t.Errorf("%s", table)
	}
	if again := string(printed(t, "summary "+dir)); again != table {
		t.Errorf("read again, it is\n%s\nand not\n%s", again, table)
	}
	if said := string(printed(t, "summary "+dir+" --verbose")); !strings.Contains(said, ", frames") || strings.Contains(table, "frames") {
		t.Errorf("--verbose: %s", said)
	}
	if said := string(printed(t, "summary "+dir+" --margin 50%")); !strings.Contains(said, "Docker with --cpus is equivalent to bare metal") || !strings.Contains(said, "at ±50 %") {
		t.Errorf("--margin: %s", said)
	}
	if said := string(printed(t, "summary "+dir+" --against cn:docker:quota")); !strings.Contains(said, "faster than Docker with --cpus") {
		t.Errorf("--against: %s", said)
	}

	text, err := fs.ReadFile(schemas.FS, "fleet.json")
	if err != nil {
		t.Fatal(err)
	}
	if said := printed(t, "schema fleet"); !bytes.Equal(said, text) {
		t.Error("tare schema fleet prints something else")
	}
	said := printed(t, "summary "+dir+" --format json")
	c := jsonschema.NewCompiler()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = c.AddResource("fleet", schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(said))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MustCompile("fleet").Validate(v); err != nil {
		t.Error(err)
	}
	var a struct {
		Folders        int
		Configurations []struct {
			Results []any
			Change  float64
		}
		Hosts    []struct{ Nodes []string }
		Outliers []struct{ Host string }
		LeftOut  []struct{ Folder string } `json:"left_out"`
	}
	if err := json.Unmarshal(said, &a); err != nil {
		t.Fatal(err)
	}
	if a.Folders != 20 || len(a.Hosts) != 18 || len(a.Hosts[0].Nodes) != 2 || len(a.Configurations) != 4 || len(a.Configurations[0].Results) != 18 ||
		len(a.Outliers) != 1 || a.Outliers[0].Host != "node-2" || len(a.LeftOut) != 1 || a.LeftOut[0].Folder != notebook.NodeResults(dir, "node-3") {
		t.Errorf("%.3000s", said)
	}
	lines, err := csv.NewReader(bytes.NewReader(printed(t, "summary "+dir+" --format csv"))).ReadAll()
	if err != nil || len(lines) != 5 || !slices.Contains(lines[0], "next_high") || slices.Contains(lines[0], "results") {
		t.Errorf("%v: %v", err, lines)
	}
}

// TestExportOfAFleet: the runs of all nodes, without those of a folder that cannot be read.
func TestExportOfAFleet(t *testing.T) {
	dir := someFleet(t, 3)
	if err := os.WriteFile(filepath.Join(notebook.NodeResults(dir, "node-1"), "study.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(printed(t, "export "+dir))).ReadAll()
	if err != nil || len(lines) != 1+2*3*10*5 || lines[1][0] != notebook.NodeResults(dir, "node-0") || lines[300][0] != notebook.NodeResults(dir, "node-2") {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

// TestClaimsOfAFleet: on how many hosts a claim holds, and the hosts that refute it. A command that answers for one host says so.
func TestClaimsOfAFleet(t *testing.T) {
	dir, mine := someFleet(t, 8), filepath.Join(t.TempDir(), "mine.yaml")
	text := "paper: Mine\ngroups:\n- name: all\n  about: {workload: ffmpeg}\n  claims:\n"
	for id, hypothesis := range map[string]string{"cheap": "{of: {platform: cn, provisioning: pinned}, to: {platform: bm}, between: [0.5, 1.1]}", "vms": "{of: {platform: vm}, to: {platform: bm}, higher: 5%}"} {
		text += "  - id: " + id + "\n    place: here\n    finding: Something holds.\n    tolerance: An example.\n    hypothesis:\n      ratio: " + hypothesis + "\n"
	}
	if err := os.WriteFile(mine, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	said := string(printed(t, "claims "+dir+" --claims "+mine))
	for _, want := range []string{"2 claims on 6 hosts. Holds, and is refuted on no host: 0. Refuted on at least one host: 1. Decided on no host: 0. Testable on no host: 1.", "holds on 5 of 6 hosts: Something holds. cheap. Does not hold on node-2: ", "1 claim is testable on no host. `tare claims ", "! " + notebook.NodeResults(dir, "node-3")} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	var all []struct {
		ID           string
		Holds, Hosts int
		On           []string `json:"refuted_on"`
	}
	if err := json.Unmarshal(printed(t, "claims "+dir+" --claims "+mine+" --format json"), &all); err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, c := range all {
		if c.ID == "cheap" && (c.Holds != 5 || c.Hosts != 6 || !slices.Equal(c.On, []string{"node-2"})) {
			t.Errorf("%+v", c)
		}
	}
	if said := string(printed(t, "claims "+dir+" --study pinning")); !strings.Contains(said, "holds on 6 of 6 hosts: Vanilla containers of an application that computes cost little") {
		t.Errorf("shipped claims: %s", said)
	}
	if _, err := output(t, []string{"explain", dir}); err == nil || !strings.Contains(err.Error(), "explain: "+dir+" holds the results of 8 nodes") {
		t.Errorf("explain: %v", err)
	}
}

// TestAdviceOfAFleet: on how many hosts each choice is the best.
func TestAdviceOfAFleet(t *testing.T) {
	dir := t.TempDir()
	for i := range 6 {
		f := notebooktest.Node(i, 0)
		f.Mean["cn docker vanilla 2/4GB"] = 1.1
		f.Add("cn crun pinned 2/4GB", 1.05)
		if i == 4 {
			f.Mean["cn crun pinned 2/4GB"] = 1.4
		}
		if err := f.Spill(filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	said := string(printed(t, "advise "+dir+" --exclude bm"))
	if want := "crun with a CPU set at 2/4GB: it is the recommended choice, or not distinguishable from it, on 5 of 6 hosts. It is worse on node-00004."; !strings.Contains(said, want) {
		t.Errorf("no %q in\n%s", want, said)
	}
	var all []struct {
		Hosts   int
		Choices []struct {
			Configuration string
			Recommended   int
			Worse         []string `json:"worse_on"`
		}
	}
	if err := json.Unmarshal(printed(t, "advise "+dir+" --exclude bm --format json"), &all); err != nil || len(all) != 1 || all[0].Hosts != 6 || len(all[0].Choices) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if c := all[0].Choices; c[0].Recommended != 5 || c[1].Recommended != 1 || len(c[1].Worse) != 5 {
		t.Errorf("%+v", c)
	}
	for _, args := range [][]string{{"advise", dir, "--format", "docker"}, {"advise", dir, "--workload", "nosuch"}} {
		if _, err := output(t, args); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v; want one line", args, err)
		}
	}
}

// TestFleetsWithoutResults: a fleet that has not begun, and a folder that is nothing, get one line.
func TestFleetsWithoutResults(t *testing.T) {
	empty, begun, other := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := (&notebook.Fleet{ID: "tare-1", Nodes: []string{"n"}}).Write(begun); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{empty: "is not a results folder", begun: "no node of this fleet has results yet", other: "is not a results folder", empty + "/none": "is not a results folder"} {
		if _, err := output(t, []string{"summary", dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
	dir := someFleet(t, 4)
	if _, err := output(t, []string{"summary", dir, "--against", "vm"}); err == nil || !strings.Contains(err.Error(), "no such environment was measured") {
		t.Errorf("--against vm: %v", err)
	}
}

// TestFleetIsDocumented: docs/results.md names each key of the fleet's JSON.
func TestFleetIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range schemaKeys(t, "fleet.json") {
		if !bytes.Contains(text, []byte("`"+name+"`")) {
			t.Errorf("docs/results.md does not explain %s", name)
		}
	}
}
