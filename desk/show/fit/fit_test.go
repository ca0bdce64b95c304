package fit

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/fit"
	"tare/notebook/notebooktest"
)

// The results of searches are reported with their row, and no more of them than a reader can use.
func TestASearchIsToldOfWithItsRow(t *testing.T) {
	for rounds, want := range map[int]int{2: 2, 40: mostFound} {
		f := notebooktest.New(2).Add("cn crun pinned 1/1GB", 0.25)
		f.Rounds, f.Study.Design.Trials, f.Study.Kind, f.Study.Config = rounds, 1, kind.Name, &kind.Config{Metric: "p95", Factor: 1.5, To: 512}
		f.Trial = func(x *notebook.Trial) {
			x.Seen = kind.Seen{Fitted: &kind.Fitted{Guests: 4, Decided: true, RanOut: kind.OutOfCPU, Why: notebook.TextMessage("it waited")}}
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{&Kind}})
		if err != nil {
			t.Fatal(err)
		}
		told := slices.DeleteFunc(slices.Clone(s.Rows[0].Doubts), func(d data.Doubt) bool { _, ok := d.(Found); return !ok })
		if len(told) != want || !reflect.DeepEqual(told[0], Found{4, true, kind.OutOfCPU, notebook.TextMessage("it waited")}) {
			t.Errorf("of %d searches: %v", rounds, told)
		}
	}
}

// The result of a search is one clause.
func TestWhatWasFoundIsSaid(t *testing.T) {
	for found, want := range map[Found]string{
		{Guests: 1}: "1 guest fits, which the runs do not decide; more were not tried",
		{4, true, kind.OutOfCPU, notebook.TextMessage("it waited")}: "4 guests fit, sure at 95 %; what runs out first is CPU: it waited",
	} {
		if said := words.Doubt(found); said != want {
			t.Errorf("%q, want %q", said, want)
		}
	}
}

// The first line says how many fit and what runs out first. Memory does where it would not hold the whole size of so many.
func TestTheFindingIsHowManyFit(t *testing.T) {
	const alone = " With more, the p95 of FFmpeg is at least 1.5 times its value without neighbours."
	const open = " The runs are too few to be sure of this number at 95 %: a longer --time-budget may be enough."
	const waiting = " About 20 that mostly wait fit: memory runs out first, if each uses all of its memory."
	for want, c := range map[string]struct {
		guests  [2]int
		left    int64 // bytes
		decided bool
		ranOut  string
		id      string
	}{
		"4 busy containers of 1 CPU, 1 GB fit on this host (crun, CPU set): CPU runs out first." + alone + waiting: {[2]int{4, 4}, 20 << 30, true, kind.OutOfCPU, "cn crun pinned 1/1GB"},
		"About 3 to 4 busy VMs of 1 CPU, 1 GB fit on this host (VM, CPU set): CPU runs out first." + alone + open:  {[2]int{4, 3}, 0, false, kind.OutOfCPU, "vm qemu kvm pinned 1/1GB"},
		"About 2 VMs of 1 CPU, 1 GB fit on this host (VM, CPU set): memory runs out first, if each uses all of its memory. " +
			"With the memory that FFmpeg uses, about 30 busy VMs of 1 CPU, 1 GB fit on this host: CPU runs out first." + alone + open: {[2]int{30, 30}, 2<<30 + 5, false, kind.OutOfCPU, "vm qemu kvm pinned 1/1GB"},
		"About 512 containers of 1 CPU, 1 GB fit on this host (crun, CPU set): nothing ran out, and Tare tried no more.":                                                                                                   {[2]int{512, 512}, 0, false, "", "cn crun pinned 1/1GB"},
		"1 container of 1 CPU, 1 GB fits on this host (crun, CPU set): the engine runs out first. If each used all of its memory, about 3 would fit into the host's memory.":                                               {[2]int{1, 1}, 3 << 30, true, kind.OutOfEngine, "cn crun pinned 1/1GB"},
		"About 4 VMs of 1 CPU, 1 GB fit on this host (VM, CPU set): memory runs out first." + alone + open:                                                                                                                 {[2]int{4, 4}, 2 << 30, false, kind.OutOfMemory, "vm qemu kvm pinned 1/1GB"},
		"4 busy emulated VMs of 1 CPU, 1 GB fit on this host (VM, CPU set, emulated): CPU runs out first." + alone + waiting + " VMs under KVM need far less CPU time, so the number of busy ones does not hold for them.": {[2]int{4, 4}, 20 << 30, true, kind.OutOfCPU, "vm qemu tcg pinned 1/1GB"},
	} {
		f := notebooktest.New(2).Add(c.id, 0.25)
		f.Study.Design.Trials, f.Study.Kind, f.Study.Config = 1, kind.Name, &kind.Config{Metric: "p95", Factor: 1.5, To: 512}
		f.Trial = func(x *notebook.Trial) {
			steps := []kind.Step{{Guests: 1, Available: c.left + int64(x.Round)}, {Guests: 2, Available: 1}}
			x.Seen = kind.Seen{Fitted: &kind.Fitted{Steps: steps, Guests: c.guests[x.Round%2], Decided: c.decided, RanOut: c.ranOut, Why: notebook.TextMessage("it waited")}}
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{&Kind}})
		if err != nil {
			t.Fatal(err)
		}
		if got := words.Headline(s); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
		if made := words.ResultOf(s, false).Made; !strings.Contains(made, "; 0 of 5 searches failed.") {
			t.Errorf("%q does not count 5 searches", made)
		}
	}
}

// Where the next number was tried, the finding says how the metric compares with the limit on both sides of it.
func TestTheFindingHasTheMetricBesideTheLimit(t *testing.T) {
	f := notebooktest.New(2).Add("cn crun pinned 1/1GB", 0.25)
	f.Study.Design.Trials, f.Study.Kind, f.Study.Config = 1, kind.Name, &kind.Config{Metric: "p95", Factor: 1.5, To: 512}
	f.Trial = func(x *notebook.Trial) {
		more := float64(x.Round) / 10
		steps := []kind.Step{{Guests: 1}, {Guests: 2, Ratio: 1.01 + more}, {Guests: 4, Ratio: 3}, {Guests: 3, Ratio: 1.8 + more}}
		x.Seen = kind.Seen{Fitted: &kind.Fitted{Steps: steps, Guests: 2, Decided: true, RanOut: kind.OutOfCPU, Why: notebook.TextMessage("it waited")}}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{&Kind}})
	if err != nil {
		t.Fatal(err)
	}
	const want = " With 2 running, the p95 of FFmpeg is 1.0 to 1.4 times its value without neighbours. With 3 it is 1.8 to 2.2 times. The limit is 1.5 times."
	if got := words.Headline(s); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("%q, want %q in it", got, want)
	}
}

// Where two searches found different numbers, the answer has what each number did, and an end that looks like the limit has another digit.
func TestWhatEachNumberDid(t *testing.T) {
	c := config{of: &kind.Config{Metric: "p95", Factor: 1.5}}
	for want, f := range map[string]*fits{
		" With 2 running, the p95 of shor is 1.15 to 1.49 times its value without neighbours. With 3 it is 1.2 to 1.9 times, and with 4 it is 1.8 to 2.3 times. The limit is 1.5 times.": {
			least: 2, most: 3, tails: map[int]span{2: {1.15, 1.487}, 3: {1.2, 1.9}, 4: {1.8, 2.3}}},
		" With 2 running, the p95 of shor is 1.1 times its value without neighbours. With 3 it is 1.7 times. The limit is 1.5 times.": {
			least: 2, most: 2, tails: map[int]span{2: {1.1, 1.1}, 3: {1.7, 1.7}}},
		" With 1 running, the p95 of shor is 2.0 times its value without neighbours. The limit is 1.5 times.": {
			tails: map[int]span{1: {2, 2}}},
	} {
		if got := c.limit(f, "shor"); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
