package page

import (
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/words"
	"tare/notebook/notebooktest"
)

// figure7Hosts are hosts of 16 and 112 CPUs with costs as the paper found them.
func figure7Hosts() (small, large *notebooktest.Folder) {
	return notebooktest.OneSize(16, notebooktest.Ratios{Vanilla: 1.01, Pinned: 1.01}), notebooktest.OneSize(112, notebooktest.Ratios{Vanilla: 1.085, Pinned: 1.075})
}

func readFolders(t *testing.T, folders ...*notebooktest.Folder) *data.Summary {
	t.Helper()
	var dirs []string
	for _, f := range folders {
		dirs = append(dirs, f.Write(t))
	}
	s, err := data.Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Figure 7 of two hosts has the paper's two groups of bars. Its captions separate the overhead that the larger host adds, and say what else the
// machines may differ in.
func TestFigure7OfTwoHosts(t *testing.T) {
	small, large := figure7Hosts()
	large.Host.Kernel = "7.0"
	s := readFolders(t, large, small)
	figs := figures(s)
	change, mean := figs[0], figs[1]
	if want := "Figure 7 of the paper, redrawn from these runs: One container size by the host's number of cores – ffmpeg (segments=1, width=1920) at 4xlarge"; mean.Title != want {
		t.Errorf("%q, want %q", mean.Title, want)
	}
	at := -1
	for _, mark := range []string{"16 CPUs, CHR 1, bare metal: ", "16 CPUs, CHR 1, Docker, CPU quota (--cpus): ", "16 CPUs, CHR 1, Docker, CPU set (--cpuset-cpus): ",
		"112 CPUs, CHR 0.14, bare metal: ", "112 CPUs, CHR 0.14, Docker, CPU quota (--cpus): ", "112 CPUs, CHR 0.14, Docker, CPU set (--cpuset-cpus): "} {
		i := strings.Index(mean.Alt, mark)
		if i <= at {
			t.Errorf("%q is not drawn, or not in the paper's order: %s", mark, mean.Alt)
		}
		at = i
	}
	for _, want := range []string{"The machines differ in their kernel.", "The ratio to bare metal on 112 CPUs over that on 16 CPUs: Docker, CPU quota (--cpus): 1.08 (",
		"What exceeds 1 is the platform-size overhead", "no comparison of machines can tell these from the number of CPUs"} {
		if !strings.Contains(words.Plain(change.Caption), want) {
			t.Errorf("the caption does not say %q: %s", want, change.Caption)
		}
	}
	work := sizesOf(s).Works[0]
	if len(work.Across) != 2 || len(work.Cannot) != 1 || len(work.Cannot[0].Names) != 2 {
		t.Fatalf("%+v", work)
	}
	row := work.Across[0]
	if row.Name != "Docker, CPU quota (--cpus)" || row.Few != "16 CPUs of host-16 (CHR 1)" || row.Many != "112 CPUs of host-112 (CHR 0.14)" ||
		!strings.HasPrefix(row.FewRatio, "1.01 (") || !strings.HasPrefix(row.Times, "1.08 (") || row.Shows != "platform-size overhead" {
		t.Errorf("%+v", row)
	}
	if notes := strings.Join(work.Notes, " "); !strings.Contains(notes, "the ratio is the platform-type overhead") || !strings.Contains(notes, "The machines differ in their kernel. A machine with more CPUs may") {
		t.Error(notes)
	}
	// The effect of CHR is not that of another CPU, and one host says what to read it with.
	large.Host.CPUModel = "another"
	if shows := sizesOf(readFolders(t, small, large)).Works[0].Across[0].Shows; shows != "platform-size overhead, or the effect of another CPU model" {
		t.Error(shows)
	}
	if caption := figures(readFolders(t, small))[0].Caption; !strings.Contains(caption, "There is only one place.") || strings.Contains(caption, "several machines") || strings.Contains(caption, "exceeds 1") {
		t.Error(caption)
	}
}

func sizesOf(s *data.Summary) *sizePart { return sizes(s, model.Options{}) }
