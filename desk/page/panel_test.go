package page

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"tare/desk/chart"
	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/words"
	"tare/notebook"
)

// figures are those of a summary, as in its report.
func figures(s *data.Summary) []chart.Figure { return chart.OfPanels(chart.Panels(s)) }

// titles of the figures, and of each its places on the axis in order.
func titles(s *data.Summary) (names []string, places map[string]string) {
	places = map[string]string{}
	for _, p := range chart.Panels(s) {
		at := strings.Join(slices.Compact(slices.Clone(p.Places)), "; ")
		for _, f := range chart.OfPanels([]*chart.Panel{p}) {
			names = append(names, f.Title)
			places[f.Title] = at
		}
	}
	return names, places
}

// declaredNote says what of a declared figure was not measured.
func declaredNote(t *testing.T, s *data.Summary, name string) string {
	t.Helper()
	for _, d := range chart.DeclaredIn(s) {
		if d.Name == name {
			return d.Note
		}
	}
	t.Fatalf("no figure %q is declared", name)
	return ""
}

func TestDeclaredFigures(t *testing.T) {
	s := readPinning(t, small())
	names, places := titles(s)
	for title, want := range map[string]string{
		"Figure 3 of the paper, redrawn from these runs: video transcoding, vanilla and pinned – ffmpeg (segments=1)": "1/2GB; 2/4GB",
		"Figure 3, change against bare metal – ffmpeg (segments=1)":                                                   "1/2GB; 2/4GB",
		"Figure 3, emulated, not a VM’s cost – ffmpeg (segments=1)":                                                   "1/2GB; 2/4GB",
		"Figure 6 of the paper, redrawn from these runs: Cassandra under stress – cassandra (threads=100)":            "1/2GB; 2/4GB",
		"Figure 8 of the paper, redrawn from these runs: one large video against 30 small – ffmpeg at 1/2GB":          "segments 1; segments 30",
	} {
		if got, found := places[title]; !found || got != want {
			t.Errorf("%q shows %q, want %q; there are\n%s", title, got, want, strings.Join(names, "\n"))
		}
	}
	if len(names) != 5*6 {
		t.Errorf("%d figures, want 30:\n%s", len(names), strings.Join(names, "\n"))
	}
	note := figures(s)[0].Note
	for _, want := range []string{"Not measured: bare metal, xlarge; Docker, CPU set (--cpuset-cpus), xlarge (needs 4 cores, this host has 2)", "(needs 64 cores, this host has 2)."} {
		if !strings.Contains(note, want) {
			t.Errorf("the note does not say %q: %s", want, note)
		}
	}
	for _, d := range chart.DeclaredIn(s) {
		if (len(d.Panels) == 0) != (d.Name == "Figure 7") {
			t.Errorf("%s has %d panels", d.Name, len(d.Panels))
		}
	}
}

// Many treatments that one reason keeps out are counted.
func TestManyMissingAreCounted(t *testing.T) {
	p := small()
	for _, prov := range []string{"vanilla", "pinned"} {
		for _, i := range paperInstances[4:] {
			p.leftOut = append(p.leftOut, notebook.LeftOut{Treatment: notebook.Treatment{Workload: "cassandra", Params: map[string]string{"threads": "100"}, Platform: "vm", Engine: "qemu", Provisioning: prov, Instance: i}, Reason: notebook.TextMessage("no KVM")})
		}
	}
	s := readPinning(t, p)
	if got, want := declaredNote(t, s, "Figure 6"), "Not measured: 4 treatments at 8xlarge, 16xlarge (no KVM)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Figure 7: one container size on hosts of several sizes, be it several hosts or one made smaller.
func TestHostCores(t *testing.T) {
	const title = "Figure 7 of the paper, redrawn from these runs: one container on hosts of other sizes – ffmpeg (segments=1) at 4xlarge"
	for name, s := range map[string]*data.Summary{
		"16 CPUs, CHR 1; 112 CPUs, CHR 0.14":                  readPinning(t, chr(112), chr(16)),
		"16 CPUs, CHR 1; 32 CPUs, CHR 0.5; 64 CPUs, CHR 0.25": readPinning(t, chr(64, 16, 32, 0)),
	} {
		figs := figures(s)
		names, places := titles(s)
		if places[title] != name {
			t.Errorf("%q, want %q; there are\n%s", places[title], name, strings.Join(names, "\n"))
		}
		if several := strings.Contains(figs[0].Caption, "several machines"); several != (len(s.Hosts) > 1) {
			t.Errorf("%d hosts: %s", len(s.Hosts), figs[0].Caption)
		}
	}
	_, aa := checks(readPinning(t, chr(64, 16, 0)), nil)
	if len(aa) != 2 || aa[0].What != "ffmpeg (segments=1) at 4xlarge on the host with 16 of 64 CPUs" || aa[1].What != "ffmpeg (segments=1) at 4xlarge on the host with all 64 CPUs" {
		t.Errorf("A/A checks: %+v", aa)
	}
	// Two hosts alike in size are told apart by name.
	other := chr(16)
	other.hostID = "other"
	alt := figures(readPinning(t, chr(16), other))[0].Alt
	for _, host := range []string{"host-of-16", "other"} {
		if !strings.Contains(alt, "Docker, CPU set (--cpuset-cpus), on "+host+": ") {
			t.Errorf("the container on %s is not named: %s", host, alt)
		}
	}
}

// What no declared figure shows is drawn as where none is declared.
func TestRestIsDrawn(t *testing.T) {
	p := small()
	p.figures = pinningFigures[:1]
	names, _ := titles(readPinning(t, p))
	if !slices.Contains(names, "Mean execution time: ffmpeg (segments=30)") || !slices.Contains(names, "Mean response time: wordpress (users=1000)") || slices.Contains(names, "Mean execution time: ffmpeg (segments=1)") {
		t.Errorf("there are\n%s", strings.Join(names, "\n"))
	}
	// A figure is of the study that declares it, and not of another folder's rows.
	names, _ = titles(readPinning(t, paperHost(), chr(16)))
	n := 0
	for _, name := range names {
		if strings.HasPrefix(name, "Figure 7 of the paper") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("Figure 7 is drawn %d times:\n%s", n, strings.Join(names, "\n"))
	}
}

func TestNetworks(t *testing.T) {
	s := readPinning(t, networks())
	_, places := titles(s)
	const title = "The network’s share: the same site behind a bridge and on the host’s network – wordpress (users=1000) at large"
	if got, want := places[title], "host’s own; network bridge; network host"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// By instance type, networks stand next to each other, with their names and different looks.
	p := networks()
	p.figures = nil
	f := figures(readPinning(t, p))[1]
	if !strings.Contains(f.Alt, "; large, Docker, CPU set (--cpuset-cpus), network host: ") || !strings.Contains(f.Caption, "engines and networks") {
		t.Errorf("%+v", f)
	}
}

func TestSecondaryMetrics(t *testing.T) {
	s := readPinning(t, small())
	for _, rows := range s.Tables() {
		f := secondary("x", rows, s)
		if (f != nil) != (rows[0].Treatment.Workload == "wordpress" || rows[0].Treatment.Workload == "cassandra") {
			t.Errorf("%s has secondary metrics: %t", rows[0].Treatment.Workload, f != nil)
		}
		if f == nil {
			continue
		}
		if len(f.Heads) != 4 || f.Heads[3] != (secondaryHead{"requests per second", "1/s"}) || f.Constant != "The same in every row: errors 0, requests 1000. p50, p95, p99: the percentile of each run's requests, averaged over rounds; not the percentile of all requests." || len(f.Rows) != len(rows) || !strings.HasPrefix(f.Rows[0].Cells[2].Interval, "± ") {
			t.Errorf("%+v", f)
		}
	}
}

// The section of platform and size says what was fitted, or why nothing could be.
func TestSizes(t *testing.T) {
	few := sizes(readPinning(t, small()), model.Options{})
	if few == nil || len(few.Works) != 5 {
		t.Fatalf("%+v", few)
	}
	for _, w := range few.Works {
		if len(w.Fits) > 0 || len(w.Cannot) == 0 {
			t.Errorf("two sizes are fitted, or it is not said why not: %+v", w)
		}
	}
	many := sizes(readPinning(t, paperHost()), model.Options{Tolerance: 0.2})
	if many.Tolerance != "20\u00a0%" {
		t.Error(many.Tolerance)
	}
	for _, w := range many.Works {
		if len(w.Fits) != 6 || len(w.Said) == 0 || len(w.Suitable) == 0 {
			t.Errorf("%s: %d fits, %d said, %d suitable", w.Title, len(w.Fits), len(w.Said), len(w.Suitable))
		}
		if w.Title == "cassandra (threads=100)" && w.Paper != "0.28 to 0.57" {
			t.Errorf("the paper's range is %q", w.Paper)
		}
		for _, f := range w.Fits {
			if f.Name == "Docker, CPU quota (--cpus)" && (f.Size != model.Falls || f.At != "at 2 of 112 CPUs" || len(f.Points) != 6 || f.LeftOut == "–") {
				t.Errorf("%s: %+v", w.Title, f)
			}
		}
	}
	if sizes(&data.Summary{}, model.Options{}) != nil {
		t.Error("nothing measured has a section of sizes")
	}
}

func TestClaims(t *testing.T) {
	s := readPinning(t, small())
	all := shipped(t)
	p := judged(s, all)
	n := 0
	for _, g := range p.Groups {
		n += len(g.Claims)
		for _, c := range g.Claims {
			if c.Claim.Finding == "" || c.Answer == "" || len(c.Reason.Why) == 0 {
				t.Errorf("%+v", c)
			}
		}
	}
	if n != len(all) || n == 0 {
		t.Errorf("%d of %d claims are shown", n, len(all))
	}
	// What many have in common is a note, and everything that refers to it finds it.
	page, err := os.ReadFile(samplePage(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Notes) == 0 || !strings.Contains(string(page), `<a href="#claims-note-1">[1]</a>.`) || !strings.Contains(string(page), `<li id="claims-note-1">`) {
		t.Errorf("notes: %q", p.Notes)
	}
	if judged(s, nil) != nil {
		t.Error("no claims have a section")
	}
	files, err := WriteSummary(s, t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	page, err = os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(page), "#claims") {
		t.Error("a page without claims links to them")
	}
	row := claimRow{claims.Verdict{
		Claim:  claims.Claim{ID: "x", Finding: "containers cost more", Published: &claims.Published{What: "suitable CHR", Low: 0.07, High: 0.14}},
		Answer: claims.NotDecided,
		Evidence: []claims.Evidence{
			{Estimate: 1.31, Low: 1.27, High: 1.35, Level: 0.998, Rounds: 8, Wanted: claims.Region{Low: 1.2, High: math.Inf(1)}, Met: claims.Yes},
			{Estimate: 1.3, Low: math.Inf(-1), High: math.Inf(1), Level: 0.998, Rounds: 1, Met: claims.Open},
			{Estimate: nan, Low: nan, High: nan},
		},
	}, words.Reason{Why: []words.Piece{{Text: "cn is too\u202e wide at 5 %"}}}}
	var b strings.Builder
	if err := pageTemplate().ExecuteTemplate(&b, "claim", row); err != nil {
		t.Fatal(err)
	}
	said := strings.ReplaceAll(b.String(), "&nbsp;", "\u00a0")
	for _, want := range []string{
		": 1.31 (1.27 to 1.35) at 99.8\u00a0%, 8 rounds; wanted: at least 1.2; yes<", ": 1.30 (without bounds) at 99.8\u00a0%, 1 round; wanted", ": no value, 0 rounds; wanted",
		">Containers cost more. <", "; published: 0.07 to 0.14, suitable CHR<", `<td class="verdict open">`, ">cn is too  wide at 5\u00a0%.", "<summary>Evidence</summary>",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}
