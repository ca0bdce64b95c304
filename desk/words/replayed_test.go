package words_test

import (
	"strings"
	"testing"

	"tare/desk/observed"
	"tare/desk/words"
	"tare/notebook"
)

// The printed command makes the whole change, in an order that the kernel accepts, and does no more, whatever a cgroup is called.
func TestObservedCommand(t *testing.T) {
	now := func(version int, burst float64) notebook.ObservedQuota {
		return notebook.ObservedQuota{Cgroup: "/sys/fs/cgroup/g", Version: version, Cores: 1, PeriodS: 0.1, BurstS: burst}
	}
	for name, c := range map[string]struct {
		q    notebook.ObservedQuota
		to   notebook.ObservedChange
		want string // without sudo tee /sys/fs/cgroup/g/
	}{
		"a limit":                   {now(2, 0), notebook.ObservedChange{Limit: 2, PeriodS: 0.1}, "echo '200000 100000' | cpu.max"},
		"none":                      {now(2, 0), notebook.ObservedChange{}, "echo 'max 100000' | cpu.max"},
		"none, version 1":           {now(1, 0), notebook.ObservedChange{}, "echo -1 | cpu.cfs_quota_us"},
		"a shorter period":          {now(1, 0), notebook.ObservedChange{Limit: 1, PeriodS: 0.01}, "echo 10000 | cpu.cfs_quota_us && echo 10000 | cpu.cfs_period_us"},
		"a longer period":           {now(1, 0), notebook.ObservedChange{Limit: 1, PeriodS: 0.2}, "echo 200000 | cpu.cfs_period_us && echo 200000 | cpu.cfs_quota_us"},
		"a burst":                   {now(2, 0), notebook.ObservedChange{Limit: 1, PeriodS: 0.1, BurstS: 0.1}, "echo 100000 | cpu.max.burst"},
		"a limit and a burst":       {now(2, 0), notebook.ObservedChange{Limit: 2, PeriodS: 0.1, BurstS: 0.02}, "echo '200000 100000' | cpu.max && echo 20000 | cpu.max.burst"},
		"a period, a smaller burst": {now(2, 0.05), notebook.ObservedChange{Limit: 1, PeriodS: 0.01, BurstS: 0.01}, "echo 10000 | cpu.max.burst && echo '10000 10000' | cpu.max"},
		"CPUs":                      {now(2, 0), notebook.ObservedChange{CPUs: 1}, ""},
	} {
		o := &notebook.Observation{Target: notebook.ObservedTarget{CPUs: "0-1"}, Quota: &c.q}
		if c.to.CPUs == 0 {
			c.to.CPUs = 2
		}
		a := &observed.Answer{Observation: o, Advice: &observed.Advice{Change: &c.to}}
		if got := strings.ReplaceAll(words.ObservedCommand(a), "sudo tee /sys/fs/cgroup/g/", ""); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for path, want := range map[string]string{"/g;touch owned": "'/g;touch owned'/cpu.max", "/it's": `'/it'\''s'/cpu.max`, "/web\\x2d1": `'/web\x2d1'/cpu.max`, "/g\x1b[2J": ""} {
		q := now(2, 0)
		q.Cgroup = path
		o := &notebook.Observation{Target: notebook.ObservedTarget{CPUs: "0-1"}, Quota: &q}
		got := words.ObservedCommand(&observed.Answer{Observation: o, Advice: &observed.Advice{Change: &notebook.ObservedChange{CPUs: 2}}})
		if want == "" && got != "" || !strings.HasSuffix(got, want) {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
