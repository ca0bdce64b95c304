package export

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/require"
)

const document = "../../docs/results.md"

// python is where scripts/python installs pandas and DuckDB.
const python = "/usr/local/lib/tare-python"

// runsSection is the part of the document about the export.
func runsSection(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## The runs\n")
	section, _, ends := strings.Cut(rest, "\nEarlier versions called some columns differently:")
	if !found || !ends {
		t.Fatalf("%s has no section about the runs", document)
	}
	return section
}

// exported writes the folders as runs.csv into a folder, and returns its rows.
func exported(t *testing.T, dir string, folders ...string) [][]string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, folders, csvFormat); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "runs.csv"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// samples are folders with warm-ups, traced runs, an A/A control, emulated VMs, failures and services.
func samples(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("../../cmd/tare/testdata/samples/*/study.json")
	if err != nil || len(all) < 10 {
		t.Fatalf("%d sample folders: %v", len(all), err)
	}
	for i := range all {
		all[i] = filepath.Dir(all[i])
	}
	return all
}

// TestColumnsAreDocumented: docs/results.md has a line for each column of the export, in their order, with unit and meaning. A column that has empty cells
// says when.
func TestColumnsAreDocumented(t *testing.T) {
	var named []string
	never := map[string]bool{}
	for _, line := range regexp.MustCompile("(?m)^\\| `(.*?)` \\| (.*) \\|$").FindAllStringSubmatch(runsSection(t), -1) {
		cells := strings.Split(line[2], " | ")
		if len(cells) != 3 || slices.Contains(cells, "") {
			t.Errorf("column %s: %q; want its unit, its meaning, and when it is empty", line[1], line[2])
			continue
		}
		named = append(named, line[1])
		never[line[1]] = cells[2] == "never"
	}
	rows := exported(t, t.TempDir(), samples(t)...)
	if !slices.Equal(named, rows[0]) {
		t.Errorf("the document has the columns\n%s\nand the export\n%s", strings.Join(named, " "), strings.Join(rows[0], " "))
	}
	for i, name := range rows[0] {
		for n, row := range rows[1:] {
			if row[i] == "" && never[name] {
				t.Errorf("column %s is never empty, says the document; it is in row %d, of %s", name, n+1, row[0])
				break
			}
		}
	}
}

// measuredMeans are the means of the runs that count, by configuration.
func measuredMeans(t *testing.T, rows [][]string) map[string]float64 {
	t.Helper()
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	sum, n := map[string]float64{}, map[string]float64{}
	for _, row := range rows[1:] {
		cell := func(name string) string { return row[at[name]] }
		if cell("failure") != "" || slices.ContainsFunc([]string{"warmup", "traced", "aa_control", "emulated"}, func(name string) bool { return cell(name) == "true" }) {
			continue
		}
		v, err := strconv.ParseFloat(cell("value"), 64)
		if err != nil {
			t.Fatal(err)
		}
		of := cell("workload") + cell("instance") + cell("treatment")
		sum[of] += v
		n[of]++
	}
	for of := range sum {
		sum[of] /= n[of]
	}
	if len(sum) < 3 || len(rows) < 50 {
		t.Fatalf("%d configurations in %d rows are too few to check an example", len(sum), len(rows))
	}
	return sum
}

// TestExamplesOfResults executes the examples of docs/results.md for pandas, R and DuckDB. Each prints the right mean of each
// configuration.
func TestExamplesOfResults(t *testing.T) {
	_, err := os.Stat(python)
	require.That(t, err == nil, "pandas and DuckDB (scripts/python)")
	dir := t.TempDir()
	want := measuredMeans(t, exported(t, dir, "../../cmd/tare/testdata/samples/timing", "../../cmd/tare/testdata/samples/traced"))
	number := regexp.MustCompile(`\d+\.\d+(e-?\d+)?`)
	done := 0
	for _, example := range regexp.MustCompile("(?ms)^```(python|r|sql)\n(.*?)^```$").FindAllStringSubmatch(runsSection(t), -1) {
		language, text := example[1], example[2]
		run := map[string][]string{
			"python": {"python3", "-c", text},
			"r":      {"Rscript", "-e", text},
			"sql":    {"python3", "-c", fmt.Sprintf("import duckdb; print(duckdb.sql(%q).fetchall())", text)},
		}[language]
		require.Program(t, run[0])
		cmd := exec.CommandContext(t.Context(), run[0], run[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+python)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", language, err, said)
			continue
		}
		done++
		printed := number.FindAllString(string(said), -1)
		for of, mean := range want {
			if !slices.ContainsFunc(printed, func(text string) bool {
				v, err := strconv.ParseFloat(text, 64)
				return err == nil && math.Abs(v/mean-1) < 1e-4
			}) {
				t.Errorf("%s: no mean of %s, which is %g:\n%s", language, of, mean, said)
			}
		}
	}
	if done != 3 {
		t.Errorf("%d examples were executed, want 3", done)
	}
}
