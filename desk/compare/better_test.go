package compare_test

import (
	"strings"
	"testing"

	"tare/desk/words"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// A bandwidth that is less than before is slower.
func TestABandwidthThatIsLess(t *testing.T) {
	before, after := notebooktest.Stream(), notebooktest.Stream()
	const docker, vm = "stream cn docker pinned 2/4GB", "stream vm qemu kvm pinned 2/4GB"
	after.Seed, after.Mean[docker], after.Mean[vm] = 9, 0.9*after.Mean[docker], 1.2*after.Mean[vm]
	c := from(t, read(t, before), read(t, after), 0.01)
	said := map[string]string{}
	for _, x := range c.Changes {
		said[x.Old.Treatment.ID+" "+x.Old.Metric.Name] = string(x.Answer) + ": " + words.ChangedBy(c, x)
	}
	for of, want := range map[string][3]string{
		docker + " copy bandwidth":  {"slower: ", "% less (", ", which is worse"},
		docker + " triad bandwidth": {"slower: ", "% less (", ", which is worse"},
		docker + " latency":         {"slower: ", "% more (", ")"},
		vm + " copy bandwidth":      {"faster: ", "% more (", ", which is better"},
		vm + " latency":             {"faster: ", "% less (", ")"},
	} {
		if s := said[of]; !strings.HasPrefix(s, want[0]) || !strings.Contains(s, want[1]) || !strings.HasSuffix(s, want[2]) {
			t.Errorf("%s: %s; want %q", of, s, want)
		}
	}
	if s := words.Compared(c); !strings.Contains(s, "of 9 figures 3 are slower, 3 are faster") {
		t.Error(s)
	}
	worse := c.Found(stats.Slower)
	if len(worse) != 3 || !(worse[0].Cost().Low > 1.05) {
		t.Errorf("%+v", worse)
	}
	// Higher is better for the only metric: one configuration is slower and one is faster.
	for _, f := range []*notebooktest.Folder{before, after} {
		f.Study.Also = nil
	}
	if s := words.Compared(from(t, read(t, before), read(t, after), 0.01)); !strings.Contains(s, "is faster, 19.4 % more (18.7 to 20.1), which is better; stream, Docker, CPU set (--cpuset-cpus), 2/4GB is slower, 9.9") {
		t.Error(s)
	}
	// With a time as second metric, a lower value may be better or worse.
	for i, f := range []*notebooktest.Folder{before, after} {
		f.Add("cpu bm 2/4GB", 1).Add("cpu cn docker pinned 2/4GB", 1+0.1*float64(i))
	}
	if s := words.Compared(from(t, read(t, before), read(t, after), 0.01)); !strings.Contains(s, "; stream, Docker, CPU set (--cpuset-cpus), 2/4GB is slower, 10.2 % less (9.6 to 10.8), which is worse; cpu, Docker, CPU set (--cpuset-cpus), 2/4GB is slower") {
		t.Error(s)
	}
}
