package claims

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	papers "tare/claims"
	"tare/desk/data"
	"tare/notebook"
	"tare/yamlfile"
)

// File is a file of claims.
type File struct {
	Paper   string      `yaml:"paper" jsonschema:"required"`
	Machine Values      `yaml:"machine,omitempty"` // the kinds of VM, for selectors without machine: of several, the first with the fewest missing comparisons; empty: the usual machine
	Without []Exclusion `yaml:"without,omitempty"` // exclusions of every claim
	Groups  []group     `yaml:"groups" jsonschema:"required"`
}

type group struct {
	Name   string   `yaml:"name" jsonschema:"required"`
	About  Selector `yaml:"about,omitempty"` // what every "of" in the group selects by the keys that it omits
	Claims []Claim  `yaml:"claims" jsonschema:"required"`
}

// About gives the shipped claims that the studies of these folders name; all that ship where none names any.
func About(s *data.Summary) (all []Claim, err error) {
	var sets []string
	for _, f := range s.Folders {
		for _, name := range f.Study.Claims {
			if slices.Contains(sets, name) {
				continue
			}
			sets = append(sets, name)
			set, err := Shipped(name)
			if err != nil {
				return nil, fmt.Errorf("%s: its study's claims: %w", f.Dir, err)
			}
			all = append(all, set...)
		}
	}
	if len(sets) == 0 {
		return Shipped("")
	}
	return all, nil
}

// Papers are the names of the papers whose claims ship with Tare, in order.
func Papers() (names []string) {
	files, err := fs.Glob(papers.FS, "*.yaml")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file, ".yaml"))
	}
	return names
}

// Shipped gives the claims that ship with Tare: the claims of one paper ("pinning") or, with an empty name, of all papers.
func Shipped(study string) ([]Claim, error) {
	var all []Claim
	for _, name := range Papers() {
		if study != "" && study != name {
			continue
		}
		file := name + ".yaml"
		text, err := fs.ReadFile(papers.FS, file)
		if err != nil {
			return nil, err
		}
		cs, err := Parse("claims/"+file, text)
		if err != nil {
			return nil, err
		}
		all = append(all, cs...)
	}
	if all == nil {
		return nil, fmt.Errorf("there are no claims of %q: must be one of %s", study, strings.Join(Papers(), ", "))
	}
	return all, nil
}

// Parse reads a file of claims; name is how errors call it, and its last part without the ending is the claims' study.
// Errors are one line with file, line and what is allowed.
func Parse(name string, text []byte) ([]Claim, error) {
	all, machines, err := parse(name, text, nil)
	if err != nil || len(machines) < 2 {
		return all, err
	}
	for _, m := range machines[1:] {
		same, _, err := parse(name, text, Values{m})
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i].Otherwise = append(all[i].Otherwise, same[i])
		}
	}
	return all, nil
}

// parse reads the claims about VMs of one kind: as, or without it the first kind that the file names. machines are all that it names.
func parse(name string, text []byte, as Values) (all []Claim, machines Values, err error) {
	var f File
	if err := yamlfile.Decode(name, text, &f); err != nil {
		return nil, nil, err
	}
	study := name[strings.LastIndexAny(name, `/\`)+1:]
	study = strings.TrimSuffix(strings.TrimSuffix(study, ".yaml"), ".yml")
	machines = f.Machine
	if f.Machine = as; len(as) == 0 {
		f.Machine = machines[:min(1, len(machines))]
	} else if as[0] == notebook.UsualWord {
		f.Machine = nil // as where a file names none
	}
	all, err = f.claims(study)
	var at *problem
	if errors.As(err, &at) {
		return nil, nil, fmt.Errorf("%s%s: %w", name, cmp.Or(yamlfile.Line(text, at.path...), ":1"), at)
	}
	return all, machines, err
}

// problem is what is wrong with a part of a file.
type problem struct {
	path []any // keys and indices
	text string
}

func (p *problem) Error() string {
	var b strings.Builder
	for _, k := range p.path {
		if s, ok := k.(string); ok && s != "groups" && s != "claims" && s != "hypothesis" {
			b.WriteString(s + ": ")
		}
	}
	return b.String() + p.text
}

// within puts a problem of a part below where the part is.
func within(err error, path ...any) error {
	var p *problem
	if errors.As(err, &p) {
		p.path = append(slices.Clone(path), p.path...)
	}
	return err
}

func wrong(format string, args ...any) error { return &problem{text: fmt.Sprintf(format, args...)} }

var idOK = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// claims checks the file and gives what it says.
func (f *File) claims(study string) ([]Claim, error) {
	if strings.TrimSpace(f.Paper) == "" {
		return nil, wrong("paper: is missing: must be the title of the source of the claims")
	}
	if err := (&Selector{Machine: f.Machine}).check(); err != nil {
		return nil, err
	}
	for i, e := range f.Without {
		if err := e.check(); err != nil {
			return nil, within(err, "without", i)
		}
		if e.empty() || strings.TrimSpace(e.Why) == "" {
			return nil, within(wrong("must have the form {workload: …, instance: …, why: …}"), "without", i)
		}
	}
	for i := range f.Without {
		f.Without[i].made(f.Machine, Selector{})
	}
	seen := map[string]bool{}
	var all []Claim
	for i, g := range f.Groups {
		if g.Name == "" {
			return nil, within(wrong("name: is missing: must be a heading"), "groups", i)
		}
		if err := g.About.check(); err != nil {
			return nil, within(err, "groups", i, "about")
		}
		for j, c := range g.Claims {
			err := c.check()
			if err == nil && seen[c.ID] {
				err = within(wrong("%q is there twice; every claim has an id of its own", c.ID), "id")
			}
			if err == nil {
				err = within(c.Hypothesis.check(), "hypothesis")
			}
			if err != nil {
				return nil, within(err, "groups", i, "claims", j)
			}
			seen[c.ID] = true
			c.Study, c.Paper, c.Group = study, f.Paper, g.Name
			if !c.ExcludedToo {
				c.Without = f.Without
			}
			c.Hypothesis.about(g.About)
			c.Hypothesis.made(f.Machine)
			if err := c.Hypothesis.complete(); err != nil {
				return nil, within(err, "groups", i, "claims", j, "hypothesis")
			}
			if p := c.Published; p != nil && p.Value != 0 {
				p.Low, p.High = p.Value, p.Value
			}
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, within(wrong("groups: has no claim: must have the form [{name: …, claims: […]}]"), "groups")
	}
	return all, nil
}

func (c *Claim) check() error {
	switch p := c.Published; {
	case !idOK.MatchString(c.ID) || len(c.ID) > 40:
		return within(wrong("%q: must be at most 40 lower-case letters, digits and hyphens", c.ID), "id")
	case strings.TrimSpace(c.Finding) == "":
		return wrong("%s has no finding: write a sentence", c.ID)
	case strings.TrimSpace(c.Place) == "":
		return wrong("%s has no place: write where the finding is published, as in III-B1", c.ID)
	case c.PaperCHR != 0 && !(c.PaperCHR > 0 && c.PaperCHR <= 1):
		return within(wrong("%g: must be a share of the host's cores, above 0 and at most 1", c.PaperCHR), "paper_chr")
	case p == nil:
	case p.What == "" || (p.Value != 0) == (p.Low != 0 || p.High != 0) || p.Value == 0 && !(p.Low < p.High):
		return within(wrong("must have the form {what: …, value: N} or {what: …, from: N, to: N}"), "published")
	}
	if c.Hypothesis.hasNumbers() && strings.TrimSpace(c.Tolerance) == "" {
		return wrong("%s has no tolerance: its hypothesis has bounds other than higher and lower, so write why they are where they are", c.ID)
	}
	return nil
}

// hasNumbers says whether a bound stands for a word or a number of the paper, and so needs a reason.
func (h *Hypothesis) hasNumbers() bool {
	for _, part := range h.kids() {
		if part.hasNumbers() {
			return true
		}
	}
	if b := h.form().bounds; b != nil {
		return b.Equal > 0 || b.AtLeast != 0 || b.AtMost != 0 || b.Between != nil
	}
	return h.Trend != nil && h.Trend.Constant > 0
}

// count is how many of these are true.
func count(there ...bool) (n int) {
	for _, is := range there {
		if is {
			n++
		}
	}
	return n
}

func (h *Hypothesis) check() error {
	forms := count(len(h.All) > 0, len(h.Any) > 0, len(h.Most) > 0, h.Value != nil, h.Ratio != nil, h.Difference != nil, h.Removed != nil, h.Part != nil, h.Gain != nil, h.Trend != nil, h.Unrecorded != "")
	if forms != 1 {
		return wrong("%d forms: must be exactly one of all, any, most, value, ratio, difference, removed, part, gain, trend, unrecorded", forms)
	}
	if f := h.form(); f.name != "" {
		err := f.check()
		switch {
		case err != nil:
		case h.Trend != nil:
			err = h.Trend.check()
		case h.Part != nil:
			err = h.Part.check()
		}
		return within(err, f.name)
	}
	return h.parts((*Hypothesis).check)
}

// parts does something with each hypothesis that this one is put together from.
func (h *Hypothesis) parts(do func(*Hypothesis) error) error {
	for _, of := range []struct {
		key   string
		parts []Hypothesis
	}{{"all", h.All}, {"any", h.Any}, {"most", h.Most}} {
		for i := range of.parts {
			if err := do(&of.parts[i]); err != nil {
				return within(err, of.key, i)
			}
		}
	}
	return nil
}

func (p *Part) check() error {
	if len(p.Metric) == 0 {
		return within(wrong("is missing: a part of the whole, as in secondary.compilation"), "metric")
	}
	if err := (data.Quantity{Of: p.Whole}).Check(); err != nil {
		return within(wrong("%v", err), "whole")
	}
	return nil
}

func (t *Trend) check() error {
	switch {
	case !slices.Contains([]By{"", ByRatio, ByValue, ByDifference}, t.By):
		return within(wrong("%q: must be ratio, value or difference", string(t.By)), "by")
	case t.By == ByValue && !t.To.empty():
		return within(wrong("a value is of one treatment: leave it out"), "to")
	case t.Over == "":
		return wrong("over: is missing: must be instance, host_cores or the name of a parameter")
	case t.Over == OverInstance && t.Sizes != "":
		return within(wrong("a trend over instance is over all sizes: leave it out"), "sizes")
	case count(t.Falls > 0, t.Rises > 0, t.Constant > 0) != 1:
		return wrong("must have exactly one of falls, rises, constant, as in falls: 2%%")
	}
	return nil
}

// check checks what the forms have in common.
func (f form) check() error {
	if err := f.of.check(); err != nil {
		return within(err, "of")
	}
	if f.to != nil {
		if err := f.to.check(); err != nil {
			return within(err, "to")
		}
		if len(f.to.Workload) > 0 && len(f.measured.Metric) == 0 {
			return within(wrong("workload: without a metric a ratio is of one workload; gain holds two against each other"), "to")
		}
	}
	if f.than != nil {
		if f.than.empty() {
			return within(wrong("is missing: write what differs from `of`, as in {platform: vm}"), "than")
		}
		if err := f.than.check(); err != nil {
			return within(err, "than")
		}
	}
	if err := f.measured.quantity().Check(); err != nil {
		return within(wrong("%v", err), "metric")
	}
	if len(f.measured.Per) > 0 && len(f.measured.Metric) == 0 {
		return within(wrong("is there without a metric"), "per")
	}
	if !slices.Contains([]Sizes{"", Each, Some, Smallest, Largest}, f.sizes) {
		return within(wrong("%q: must be each, any, smallest or largest", string(f.sizes)), "sizes")
	}
	if f.bounds == nil {
		return nil
	}
	return f.bounds.check(f.name)
}

func (b *Bounds) check(form string) error {
	if n := count(b.Higher > 0, b.Lower > 0, b.Equal > 0, b.AtLeast != 0, b.AtMost != 0, b.Between != nil); n != 1 {
		return wrong("%d bounds: must be exactly one of higher, lower, equal, at_least, at_most, between", n)
	}
	ratio := form == "ratio" || form == "gain"
	if !ratio && b.Higher+b.Lower+b.Equal > 0 {
		return wrong("higher, lower and equal are bounds of a ratio: must be at_least, at_most or between")
	}
	signed := form == "difference" || form == "removed" || form == "part"
	number := func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) && (f >= 0 || signed) }
	what, two := "a number above 0", "two numbers"
	if ratio {
		what, two = "a ratio above 0", "two ratios"
	}
	switch {
	case !number(b.AtLeast):
		return within(wrong("%g: must be %s", b.AtLeast, what), "at_least")
	case !number(b.AtMost):
		return within(wrong("%g: must be %s", b.AtMost, what), "at_most")
	case b.Between != nil && (len(b.Between) != 2 || !number(b.Between[0]) || !number(b.Between[1]) || !(b.Between[0] < b.Between[1])):
		return within(wrong("%v: must be %s, as in [1.8, 2.2]", b.Between, two), "between")
	}
	return nil
}

// Allowed implements yamlfile.Limited.
func (s *Selector) Allowed() map[string][]string {
	allowed := map[string][]string{}
	for _, c := range s.choices() {
		if c.of.Values != nil {
			allowed[c.of.Name] = c.of.Values
		}
	}
	allowed[notebook.FactorPlatform.Name] = notebook.PlatformWords
	return allowed
}

func (s *Selector) check() error {
	if key, value, allowed := yamlfile.Refused(s); key != "" {
		return within(wrong("%q: must be one of %s", value, strings.Join(allowed, ", ")), key)
	}
	for i, p := range s.Platform {
		s.Platform[i] = notebook.PlatformNamed(p)
	}
	for _, c := range s.choices() {
		for _, v := range *c.Values {
			if err := c.check(v); err != nil {
				return within(err, c.of.Name)
			}
		}
		if _, both := s.Params[c.of.Name]; both && len(*c.Values) > 0 {
			return within(wrong("is under params too: remove one of the two"), c.of.Name)
		}
	}
	for name, values := range s.Params {
		for _, value := range values {
			if err := checkLeast(value); err != nil {
				return within(err, "params", name)
			}
		}
	}
	for _, r := range []struct {
		key string
		r   *Range
	}{{"cores", s.Cores}, {"host_cores", s.HostCores}, {"chr", s.CHR}} {
		if r.r != nil && (!(r.r.AtLeast >= 0) || !(r.r.AtMost >= 0) || r.r.AtLeast == 0 && r.r.AtMost == 0 || r.r.AtMost != 0 && r.r.AtMost < r.r.AtLeast) {
			return within(wrong("must have the form {at_least: N}, {at_most: N} or both"), r.key)
		}
	}
	return nil
}

// check says why a text is not a value of the factor.
func (c choice) check(text string) error {
	switch f := c.of; {
	case f.Name == notebook.FactorMachine.Name:
		if _, err := notebook.ParseMachine(text); err != nil {
			return wrong("%v", err)
		}
	case f.Name == notebook.FactorNeighbours.Name:
		if _, err := notebook.ParseNeighbours(text); err != nil {
			return wrong("%v", err)
		}
	case f.Number:
		if _, err := strconv.ParseFloat(text, 64); err != nil && !strings.HasSuffix(text, orMore) {
			return wrong("%q: must be a number (%s), such as 8, or 8 or more", text, f.Unit)
		}
		return checkLeast(text)
	}
	return nil
}

// checkLeast says what is wrong with a least value; nil if it is valid, or if the text is not a least value.
func checkLeast(text string) error {
	least, ok := strings.CutSuffix(text, orMore)
	if !ok {
		return nil
	}
	if n, err := strconv.ParseFloat(least, 64); err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return wrong("%q must begin with a number, as in 1 or more", text)
	}
	return nil
}

// about puts the group's selector beneath each of the hypothesis' own.
func (h *Hypothesis) about(s Selector) {
	for _, part := range h.kids() {
		part.about(s)
	}
	if of := h.form().of; of != nil {
		*of = s.over(*of)
	}
}

// made gives the machine to each of the hypothesis' selectors that names none.
func (h *Hypothesis) made(as Values) {
	for _, part := range h.kids() {
		part.made(as)
	}
	f := h.form()
	if f.of == nil {
		return
	}
	of := *f.of
	for _, s := range []*Selector{f.of, f.to, f.than} {
		if s != nil && !s.empty() { // an empty one is bare metal
			s.made(as, of)
		}
	}
}

// made gives the selector the machine, unless it names one or chooses no VMs. A selector without platforms has those of `of`.
func (s *Selector) made(as Values, of Selector) {
	platforms := s.Platform
	if len(platforms) == 0 {
		platforms = of.Platform
	}
	if len(s.Machine) == 0 && (len(platforms) == 0 || slices.ContainsFunc(platforms, notebook.HasMachine)) {
		s.Machine = as
	}
}

// complete checks what the claim and its group must say between them.
func (h *Hypothesis) complete() error {
	f := h.form()
	form, of := f.name, f.of
	switch {
	case of == nil:
	case len(of.Workload) == 0:
		return within(wrong("workload: is missing, here and in the group's about"), form, "of")
	case len(of.Platform) == 0:
		return within(wrong("platform: is missing, here and in the group's about"), form, "of")
	}
	return h.parts((*Hypothesis).complete)
}
