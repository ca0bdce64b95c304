package claims

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// oneClaim is a file of claims whose claim begins at line 6, with the hypothesis at line 10.
func oneClaim(hypothesis string) string {
	return `paper: p
groups:
- name: g
  about: {workload: ffmpeg}
  claims:
  - id: c
    place: III
    finding: f
    tolerance: t
    hypothesis:
` + hypothesis + "\n"
}

func TestParse(t *testing.T) {
	all, err := Parse("some/mine.yaml", []byte(oneClaim(`
      any:
      - ratio: {of: {platform: [cn, vm], params: {segments: "1"}}, to: {platform: bm}, sizes: smallest, between: [1.5, 2]}
      - gain: {of: {platform: cn, workload: wordpress}, than: {workload: ffmpeg}, higher: 2.5%}
      - trend: {of: {platform: cn}, over: instance, falls: 2%}`)))
	if err != nil {
		t.Fatal(err)
	}
	c := all[0]
	if c.Study != "mine" || c.Paper != "p" || c.Group != "g" || len(c.Hypothesis.Any) != 3 || c.Hypothesis.Any[0].Ratio.Of.Workload[0] != "ffmpeg" ||
		c.Hypothesis.Any[1].Gain.Of.Workload[0] != "wordpress" || c.Hypothesis.Any[1].Gain.Higher != 0.025 {
		t.Errorf("%+v", c)
	}
	for _, c := range []struct{ text, want string }{
		{"", "mine.yaml: is empty"},
		{"a: [", "mine.yaml:2: "},
		{"groups: []", "mine.yaml:1: paper: is missing: must be the title of the source of the claims"},
		{"paper: p\ngroups: []", "mine.yaml:2: groups: has no claim"},
		{"paper: p\ngroup: []", "mine.yaml:2: unknown key group"},
		{"paper: p\ngroups:\n- {claims: []}", "mine.yaml:3: name: is missing: must be a heading"},
		{"paper: p\ngroups:\n- name: g\n  about: {platform: lxc}", `mine.yaml:4: about: platform: "lxc": must be one of bm, cn, vm, vmcn`},
		{strings.Replace(oneClaim("      all: []"), "id: c", "id: C!", 1), `mine.yaml:6: id: "C!": must be at most 40 lower-case letters, digits and hyphens`},
		{strings.Replace(oneClaim("      all: []"), "finding: f", "finding: ''", 1), "mine.yaml:6: c has no finding"},
		{strings.Replace(oneClaim("      all: []"), "place: III", "", 1), "mine.yaml:6: c has no place"},
		{strings.Replace(oneClaim("      all: []"), "tolerance: t", "published: {what: x}", 1), "mine.yaml:9: published: must have the form {what: …, value: N} or {what: …, from: N, to: N}"},
		{strings.Replace(oneClaim("      ratio: {of: {platform: cn}, equal: 5%}"), "tolerance: t", "", 1), "mine.yaml:6: c has no tolerance"},
		{oneClaim("      most: [{ratio: {of: {platform: cn}, higher: 2%}}, {ratio: {of: {platform: mars}, higher: 2%}}]"), `mine.yaml:11: most: ratio: of: platform: "mars"`},
		{oneClaim("      part: {of: {platform: cn}, whole: secondary.p99, at_least: 0.5}"), "mine.yaml:11: part: metric: is missing"},
		{oneClaim("      part: {of: {platform: cn}, metric: secondary.p50, whole: p99, at_least: 0.5}"), `mine.yaml:11: part: whole: "p99": must be trial.NAME`},
		{oneClaim("      part: {of: {platform: cn}, metric: secondary.p50, higher: 2%}"), "mine.yaml:11: part: higher, lower and equal are bounds of a ratio"},
		{oneClaim("      most: []"), "mine.yaml:10: 0 forms"},
		{oneClaim("      all: []"), "mine.yaml:10: 0 forms: must be exactly one of all, any, most, value, ratio, difference, removed, part, gain, trend, unrecorded"},
		{oneClaim("      all: [{ratio: {of: {platform: cn}, higher: 2%}, any: [{all: []}]}]"), "mine.yaml:11: all: 2 forms"},
		{oneClaim("      all:\n      - {ratio: {of: {platform: cn}, higher: 2%}}\n      - ratio:\n          of: {platform: cn}\n          to: {provisioning: mine}\n          higher: 2%"), `mine.yaml:15: all: ratio: to: provisioning: "mine": must be one of vanilla, pinned, whole`},
		{oneClaim("      ratio: {of: {platform: cn}, higher: 2}"), `mine.yaml:11: "2": must be a percentage above 0, as in 2%`},
		{oneClaim("      ratio: {of: {platform: cn}, higher: 0%}"), `"0%": must be a percentage above 0`},
		{oneClaim("      ratio: {of: {platform: cn}, higher: 2%, lower: 2%}"), "mine.yaml:11: ratio: 2 bounds: must be exactly one of"},
		{oneClaim("      ratio: {of: {platform: cn}}"), "mine.yaml:11: ratio: 0 bounds: must be exactly one of"},
		{oneClaim("      ratio: {of: {platform: cn}, between: [2, 1]}"), "mine.yaml:11: ratio: between: [2 1]: must be two ratios"},
		{oneClaim("      ratio: {of: {platform: cn}, at_most: -1}"), "mine.yaml:11: ratio: at_most: -1: must be a ratio above 0"},
		{oneClaim("      ratio: {of: {platform: cn}, at_most: many}"), "mine.yaml:11: "},
		{oneClaim("      ratio: {of: {platform: cn}, at_least: .nan}"), "mine.yaml:11: ratio: at_least: NaN"},
		{oneClaim("      ratio: {of: {platform: cn}, sizes: big, higher: 2%}"), `mine.yaml:11: ratio: sizes: "big": must be each, any, smallest or largest`},
		{oneClaim("      ratio: {of: {platform: cn, chr: {}}, higher: 2%}"), "mine.yaml:11: ratio: of: chr: must have the form {at_least: N}, {at_most: N} or both"},
		{oneClaim("      ratio: {of: {platform: cn, cores: {at_least: 4, at_most: 2}}, higher: 2%}"), "mine.yaml:11: ratio: of: cores: "},
		{oneClaim("      ratio: {of: {platform: cn, color: red}, higher: 2%}"), "mine.yaml:11: unknown key color"},
		{oneClaim("      ratio: {of: {provisioning: pinned}, higher: 2%}"), "mine.yaml:11: ratio: of: platform: is missing, here and in the group's about"},
		{oneClaim("      ratio: {of: {platform: cn}, to: {workload: x}, higher: 2%}"), "mine.yaml:11: ratio: to: workload: without a metric a ratio is of one workload"},
		{oneClaim("      value: {of: {platform: cn}, metric: p99, at_most: 1}"), `mine.yaml:11: value: metric: "p99": must be trial.NAME, secondary.NAME, trace.NAME or account.NAME`},
		{oneClaim("      value: {of: {platform: cn}, metric: trial.color, at_most: 1}"), `value: metric: "trial.color": `},
		{oneClaim("      value: {of: {platform: cn}, metric: trace.elapsed, at_most: 1}"), `value: metric: "trace.elapsed": `},
		{oneClaim("      value: {of: {platform: cn}, metric: account.lunch, at_most: 1}"), `value: metric: "account.lunch": `},
		{oneClaim("      value: {of: {platform: cn}, per: secondary.requests, at_most: 1}"), "mine.yaml:11: value: per: is there without a metric"},
		{oneClaim("      value: {of: {platform: cn}, metric: secondary.p99, higher: 2%}"), "mine.yaml:11: value: higher, lower and equal are bounds of a ratio"},
		{oneClaim("      value: {of: {platform: cn}, metric: secondary.p99, at_least: -1}"), "mine.yaml:11: value: at_least: -1: must be a number above 0"},
		{oneClaim("      removed: {of: {platform: cn}, at_least: .inf}"), "mine.yaml:11: removed: at_least: +Inf"},
		{oneClaim("      trend: {of: {platform: cn}, over: instance, by: luck, falls: 2%}"), `mine.yaml:11: trend: by: "luck": must be ratio, value or difference`},
		{oneClaim("      trend: {of: {platform: cn}, to: {platform: vm}, over: instance, by: value, falls: 2%}"), "mine.yaml:11: trend: to: a value is of one treatment: leave it out"},
		{oneClaim("      gain: {of: {platform: cn}, higher: 2%}"), "mine.yaml:11: gain: than: is missing"},
		{oneClaim("      trend: {of: {platform: cn}, falls: 2%}"), "mine.yaml:11: trend: over: is missing"},
		{oneClaim("      trend: {of: {platform: cn}, over: instance}"), "mine.yaml:11: trend: must have exactly one of falls, rises, constant"},
		{oneClaim("      trend: {of: {platform: cn}, over: instance, sizes: largest, falls: 2%}"), "mine.yaml:11: trend: sizes: a trend over instance is over all sizes: leave it out"},
		{oneClaim("      ratio: {of: {workload: w, platform: cn, params: {rate: some or more}}, higher: 2%}"), `rate: "some or more" must begin with a number, as in 1 or more`},
		{strings.Replace(oneClaim("      all: []"), "tolerance: t", "paper_chr: 2", 1), "mine.yaml:9: paper_chr: 2: must be a share of the host's cores"},
		{"paper: p\nwithout:\n- {workload: x}\n" + "groups: []", "mine.yaml:3: without: must have the form {workload: …, instance: …, why: …}"},
		{"paper: p\nwithout:\n- {platform: lxc, why: w}", `mine.yaml:3: without: platform: "lxc"`},
		{"paper: p\nwithout:\n- {color: red, why: w}", "mine.yaml:3: unknown key color"},
		{oneClaim("      ratio: 3"), "mine.yaml:11: "},
		{oneClaim("      ratio: {of: {platform: {}}, higher: 2%}"), "mine.yaml:11: must be a value or a list of values"},
		{"paper: p\ngroups:\n- name: g\n  about: {workload: x, platform: cn}\n  claims:\n  - &c {id: c, place: p, finding: f, hypothesis: {ratio: {of: {}, higher: 2%}}}\n  - {id: c, place: p, finding: f, hypothesis: {ratio: {of: {}, higher: 2%}}}", `mine.yaml:7: id: "c" is there twice`},
		{strings.Repeat("#", 2<<20), "mine.yaml: has 2097152 bytes: at most 1048576 are allowed"},
	} {
		_, err := Parse("mine.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
			t.Errorf("%.200s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// The example in the documentation is a file of claims.
func TestDocumentedFile(t *testing.T) {
	text, err := os.ReadFile("../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, ok := strings.Cut(block, "```")
	all, err := Parse("docs.yaml", []byte(block))
	if err != nil || !ok || len(all) != 2 {
		t.Fatalf("%d claims: %v", len(all), err)
	}
	if v := Judge(paperWorld().exact(), all); v[1].Answer != Holds {
		t.Errorf("%s: %s", v[1].Answer, Why(v[1]))
	}
}

// Whatever a file of claims says, it is read or refused, and judged.
func FuzzParse(f *testing.F) {
	f.Add(oneClaim("      ratio: {of: {platform: cn}, higher: 2%}"))
	f.Add(oneClaim("      trend: {of: {platform: [cn, vm], workload: [a, b]}, to: {provisioning: pinned}, over: segments, constant: 2%}"))
	f.Add(oneClaim("      all: [{gain: {of: {platform: cn, chr: {at_most: 0.1}}, than: {platform: vm}, sizes: any, between: [1, 2]}}]"))
	f.Add(oneClaim("      most: [{ratio: {of: {platform: cn}, higher: 2%}}, {ratio: {of: {platform: vm}, equal: 5%}}, {any: [{ratio: {of: {platform: cn}, lower: 2%}}]}]"))
	s := smallWorld().measure(3, 0.1, 1)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse("mine.yaml", []byte(text))
		if err != nil {
			return
		}
		if vs := Judge(s, all); len(vs) != len(all) {
			t.Errorf("%d verdicts on %d claims", len(vs), len(all))
		}
	})
}

// Platforms may be named in users' words.
func TestPlatformsInUsersWords(t *testing.T) {
	const names = `
paper: mine
groups:
- name: g
  about: {workload: ffmpeg, platform: cn}
  claims:
  - {id: a, place: x, finding: f, hypothesis: {ratio: {to: {platform: [bm, vmcn]}, higher: 10%}}}
`
	want, err := Parse("c.yaml", []byte(names))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("c.yaml", []byte(strings.NewReplacer("vmcn", "vm-container", "cn", "container", "bm", "host").Replace(names)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
