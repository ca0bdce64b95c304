package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/desk/apply"
	"tare/internal/golden"
)

// The samples are folders of results, one of each kind of study; testdata/samples/README.md says what made them. Next to each is
// the output of every reading command, so that a review shows each changed number or sentence.

// reading are the files with the output of commands for one sample. In a command SAMPLE is the folder's name.
var reading = map[string][]string{
	"summary.txt":  {"summary SAMPLE"},
	"summary.json": {"summary SAMPLE --format json"},
	"claims.txt":   {"claims SAMPLE"},
	"explain.txt":  {"explain SAMPLE"},
	"advise.txt":   adviceOf("SAMPLE"),
	"export.csv":   {"export SAMPLE --format csv"},
	"report.txt":   {"report SAMPLE --out OUT"},
}

// together are those of several samples at once, or with a flag that suits one of them.
var together = map[string][]string{
	"compare.txt":  {"compare timing timing-again", "compare timing timing-again --margin 20%", "compare timing timing-again --format json"},
	"compare.md":   {"compare timing timing-again --format markdown"},
	"several.txt":  {"summary timing timing-again", "claims timing timing-again", "advise timing timing-again"},
	"baseline.txt": {"summary timing --baseline platform=cn,engine=docker,provisioning=vanilla,instance=1/1GB"},
	"against.txt":  {"summary timing --against cn:docker", "summary timing --against cn:docker:set", "summary timing --against vm", "compare timing timing-again --against cn:docker:quota", "compare timing timing-again --against cn"},
	"cost.txt":     {"advise timing --prefer cost --exclude bm"},
	"table.csv":    {"summary metrics --format csv"},
	"changes.txt":  {"report timing timing-again --out OUT --margin 2%"},
	"report.txt":   {"report timing timing-again --out OUT --pool --tolerance 5%"},
}

func adviceOf(sample string) (commands []string) {
	for _, format := range append([]string{"text", "json"}, apply.Formats...) {
		commands = append(commands, "advise "+sample+" --format "+format)
	}
	return commands
}

func TestSamplesAreReadAsBefore(t *testing.T) {
	const dir = "testdata/samples"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		sample := e.Name()
		if _, err := os.Stat(filepath.Join(dir, sample, "study.json")); err != nil {
			continue
		}
		n++
		for file, commands := range reading {
			name := filepath.Join("samples", sample, "printed", file)
			t.Run(sample+"/"+file, func(t *testing.T) { checkPrinted(t, here, name, "SAMPLE", sample, commands) })
		}
	}
	if n < 17 {
		t.Errorf("only %d samples are there", n)
	}
	for file, commands := range together {
		name := filepath.Join("samples", "together", file)
		t.Run("together/"+file, func(t *testing.T) { checkPrinted(t, here, name, "", "", commands) })
	}
}

// checkPrinted compares the output of commands with a file. They run in the folder of the samples, so that they print no path.
func checkPrinted(t *testing.T, here, name, old, sample string, commands []string) {
	t.Helper()
	var all bytes.Buffer
	t.Chdir(filepath.Join(here, "testdata", "samples"))
	for _, line := range commands {
		if old != "" {
			line = strings.ReplaceAll(line, old, sample)
		}
		if bare := slices.Contains([]string{".json", ".csv", ".md"}, filepath.Ext(name)); !bare {
			fmt.Fprintf(&all, "$ tare %s\n", line)
		}
		all.Write(printed(t, line))
	}
	t.Chdir(here)
	golden.Check(t, name, all.Bytes())
}

// printed is the output of a command, and its error. For a report it is the text of the page.
func printed(t *testing.T, line string) []byte {
	t.Helper()
	out := t.TempDir()
	stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	root := rootCommand()
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "OUT", out)
	}
	root.SetArgs(args)
	kept := os.Stdout
	os.Stdout = stdout
	err = root.ExecuteContext(t.Context())
	os.Stdout = kept
	text, readErr := os.ReadFile(stdout.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	if strings.Contains(line, "OUT") && err == nil {
		text = pageText(t, out, text)
	}
	if err != nil {
		text = fmt.Appendf(text, "tare: %v\n", err)
	}
	return text
}

// pageText is a report as its reader sees it: its files by name, and the text of the page and its figures, a line for each element.
func pageText(t *testing.T, out string, files []byte) []byte {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.NewBufferString(strings.ReplaceAll(string(files), out+string(filepath.Separator), ""))
	text := unseen.ReplaceAllString(string(page), "")
	text = tag.ReplaceAllStringFunc(text, func(s string) string {
		if slices.Contains(inline, tag.FindStringSubmatch(s)[1]) {
			return " "
		}
		return "\n"
	})
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(html.UnescapeString(line)), " "); line != "" {
			fmt.Fprintln(b, line)
		}
	}
	return b.Bytes()
}

var (
	unseen = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>|<!--.*?-->|<path d="[^"]*"><title>[^<]*</title></path>`)
	tag    = regexp.MustCompile(`</?([a-zA-Z0-9]+)[^>]*>|<![^>]*>`)
	// inline are the elements within a line of text, including cells of a table, so that a row is one line.
	inline = []string{"a", "abbr", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "td", "th", "tspan"}
)
