package words

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

var unquoted = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Shell writes words as a shell reads them.
func Shell(args ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = Plain(a); !unquoted.MatchString(a) {
			quoted[i] = "'" + strings.ReplaceAll(Plain(a), "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// begun are the words of the command that began a folder: the study's name where none are recorded.
func begun(f data.Folder) []string {
	if len(f.Args) > 0 {
		return f.Args
	}
	if f.Study.Name == "" {
		return nil
	}
	return []string{"run", f.Study.Name}
}

// measuringFlags are the options of run and bench that another folder, or another number of rounds, replaces.
var measuringFlags = []string{"--out", "--rounds", "--precision", "--decide", untilClaims, "--until", "--seed", "--time-budget", sinceFlag}

// sinceFlag names the earlier folder that a run is compared with.
const sinceFlag = "--compare"

// untilClaims is the only one of the measuringFlags without a value.
const untilClaims = "--until-claims"

// with are the words of a command without the options that others replace, and with these.
func with(args, without []string, more ...string) []string {
	var all, rest []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			rest = args[i:]
			break
		}
		arg := args[i]
		if arg == "--quiet" { // its older name, in older folders
			arg = "--tune-host"
		}
		name, _, joined := strings.Cut(arg, "=")
		if slices.Contains(without, name) {
			if !joined && name != untilClaims {
				i++
			}
			continue
		}
		all = append(all, arg)
	}
	return append(append(all, more...), rest...)
}

// Continue is the command that goes on with the last folder; empty: it is complete, or nobody knows the command.
func Continue(s *data.Summary) string {
	if len(s.Folders) == 0 {
		return ""
	}
	f := s.Folders[len(s.Folders)-1]
	args := begun(f)
	if args == nil || !f.Begun && f.Rounds >= f.Study.Least() && !f.Ended().Reason.Is("time-budget") {
		return ""
	}
	return "sudo tare " + Shell(with(args, []string{"--out"}, "--out", f.Dir)...)
}

// mostMore is how many times as many rounds as there are may be asked for to settle what is inconclusive.
const mostMore = 10

// tighter is the command that narrows the intervals of the folders, what it gains, and the number of rounds that it asks for.
func tighter(s *data.Summary) (command, gain string, rounds int) {
	last := s.Folders[len(s.Folders)-1]
	args := begun(last)
	if args == nil || last.Rounds == 0 {
		return "", "", 0
	}
	gain = "settles what is inconclusive"
	for _, r := range s.Rows {
		if s.Verdict(r) == stats.Inconclusive && r.Representative && !r.Treatment.AA {
			rounds = max(rounds, s.Rounds(r)-r.RatioRounds)
		}
	}
	if rounds <= 0 || rounds > mostMore*last.Rounds { // three times as many more halve an interval
		rounds, gain = 3*last.Rounds, "halves the intervals"
	}
	var dirs []string
	for _, f := range s.Folders {
		dirs = append(dirs, f.Dir)
	}
	first := filepath.Clean(s.Folders[0].Dir)
	out := fmt.Sprintf("%s-%d", first, len(dirs)+1)
	command = "sudo tare " + Shell(with(args, measuringFlags, "--rounds", fmt.Sprint(rounds), "--out", out)...) + " && tare summary " + Shell(append(append(dirs, out), toReference(s)...)...)
	return command, gain, rounds
}

// longer is the command that measures once more with twice the time; empty: nobody knows it, or the time had no limit.
func longer(s *data.Summary) string {
	const budget = "--time-budget"
	last := s.Folders[len(s.Folders)-1]
	for i, arg := range last.Args {
		name, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(last.Args) {
			value = last.Args[i+1]
		}
		if had, err := time.ParseDuration(value); name == budget && err == nil && had > 0 {
			out := filepath.Clean(last.Dir) + "-2"
			return "sudo tare " + Shell(with(last.Args, []string{"--out", "--seed", budget}, budget, fmt.Sprintf("%.0fs", 2*had.Seconds()), "--out", out)...)
		}
	}
	return ""
}

// afresh is the command that measures once more and says what changed: with another kernel of VMs, or else after an update. It is empty where
// nobody knows the command.
func afresh(s *data.Summary) (when, command string) {
	const kernel = "--vm-kernel"
	when = "After an update"
	if len(s.Folders) != 1 {
		return when, ""
	}
	args := begun(s.Folders[0])
	if args == nil {
		return when, ""
	}
	dir := filepath.Clean(s.Folders[0].Dir)
	more := []string{"--out", dir + "-2", sinceFlag, dir}
	if slices.ContainsFunc(args, func(arg string) bool { return arg == kernel || strings.HasPrefix(arg, kernel+"=") }) {
		when, more = "Another kernel", append([]string{kernel, "FILE"}, more...)
	}
	return when, "sudo tare " + Shell(with(args, []string{"--out", "--seed", sinceFlag, kernel}, more...)...)
}

// next are the commands that somebody may want next.
func next(s *data.Summary) ResultBlock {
	b := ResultBlock{Head: "Next"}
	add := func(label, command, after string) {
		if command != "" {
			b.Lines = append(b.Lines, ResultItem{Label: label, Command: command, After: after})
		}
	}
	unfinished := Continue(s)
	add("Continue", unfinished, "")
	if unfinished == "" && (comparesTimes(s) || comparesRates(s)) {
		command, gain, rounds := tighter(s)
		after := "(" + gain
		if t := lasting(s, rounds); t != "" {
			after += ", about " + t
		}
		add("A tighter answer", command, after+")")
	}
	if unfinished == "" && slices.ContainsFunc(s.Rows, func(r *data.Row) bool { of := phrases(r).Open; return of != nil && of(r) }) {
		add("A longer search", longer(s), "")
	}
	kernels := len(s.Folders) == 1 && len(compare.KernelsOf(s)) == 2
	if kernels {
		add("Both kernels", "tare compare "+Shell(s.Folders[0].Dir), "")
	}
	if unfinished == "" && onlyMeans(s) && !kernels {
		when, command := afresh(s)
		add(when, command, "")
	}
	reference := toReference(s)
	if strings.Contains(strings.Join(reference, " "), notebook.FactorInstance.Name) { // another command may have another size
		reference = nil
	}
	if all := places(s); all != "" && comparesTimes(s) && !slices.ContainsFunc(s.Folders, func(f data.Folder) bool { return len(f.Args) > 0 && f.Args[0] == "bench" }) {
		add("Your own command", "sudo tare "+Shell(append([]string{"bench", "--image", "IMAGE", "--platforms", all}, reference...)...)+" -- COMMAND", "")
		add("Your own service", "sudo tare "+Shell(append([]string{"bench", "--image", "IMAGE", "--platforms", all, "--service", "PORT", "--load", "/"}, reference...)...), "")
	}
	if slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return s.Verdict(r) == stats.Slower && r.Trace != nil }) {
		add("Why it is slower", "tare explain "+Shell(dirs(s)...), "")
	}
	read := append(dirs(s), toReference(s)...)
	report := slices.Clone(read)
	if len(s.Folders) == 2 && s.Folders[0].Study.Name == s.Folders[1].Study.Name { // without --pool, the command compares the two folders
		report = append(report, "--pool")
	}
	add("Full report", "tare report "+Shell(report...), "")
	add("All details", "tare summary "+Shell(append(read, "--verbose")...), "")
	return b
}

// toReference are the words of a command that name the reference, where it is not bare metal.
func toReference(s *data.Summary) []string {
	if len(s.Baseline) == 0 {
		return nil
	}
	return []string{"--against", notebook.ReferenceText(s.Baseline)}
}

func dirs(s *data.Summary) (all []string) {
	for _, f := range s.Folders {
		all = append(all, f.Dir)
	}
	return all
}

// comparesTimes says whether the folders compare timed work, as most do.
func comparesTimes(s *data.Summary) bool {
	return slices.ContainsFunc(s.Rows, func(r *data.Row) bool {
		return r.Kind == "" && r.Representative && !beside(r) && r.RatioRounds > 1
	})
}

// onlyMeans says whether the folders have timed work, but nothing that it may be compared with, such as emulated VMs only.
func onlyMeans(s *data.Summary) bool {
	return slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return r.Kind == "" && r.Rounds > 1 }) && !comparesTimes(s) && !comparesRates(s)
}

// comparesRates says whether the folders compare rates of their own kind, such as the requests a second of services.
func comparesRates(s *data.Summary) bool {
	return slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return phrases(r).Rate != nil && r.RatioRounds > 1 })
}

// places are bare metal and the container engines that the folders have, as --platforms takes them; empty: there is no container.
func places(s *data.Summary) string {
	var engines []string
	for _, r := range s.Rows {
		if r.Treatment.Platform == notebook.CN && r.Rounds > 0 && r.Treatment.Engine != notebook.LayersEngine {
			engines = append(engines, "cn:"+Plain(r.Treatment.Engine))
		}
	}
	if engines == nil {
		return ""
	}
	return strings.Join(data.Distinct(append([]string{notebook.BM}, engines...), func(name string) string { return name }), ",")
}
