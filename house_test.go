// Package tare has no code of its own: its tests hold what is true of the module as a whole.
package tare

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// arrows are the imports that the house does not allow (docs/architecture.md). A pattern is a folder of the module and
// all below it; with /* it is only what is below.
var arrows = []struct {
	from, to string
	tests    bool // neither do their tests
	why      string
}{
	{from: "lab", to: "desk", tests: true, why: "the laboratory measures and knows of no report."},
	{from: "desk", to: "lab", tests: true, why: "the desk reads results on any machine, and knows of no engine."},
	{from: "notebook", to: "", tests: true, why: "both wings stand on the notebook."},
	{from: "stats", to: "", tests: true, why: "intervals are functions of only numbers."},
	{from: "lab", to: "cmd", tests: true, why: "a command calls."},
	{from: "desk", to: "cmd", tests: true, why: "a command calls."},

	{from: "lab/study", to: "lab/session", why: "a session opens the host and runs a study on it."},
	{from: "lab/study", to: "lab/engine/*", why: "a study knows engines only by their contract."},
	{from: "lab/studyfile", to: "lab/study", why: "a study file says what is asked, whoever measures it."},
	{from: "lab/studyfile", to: "lab/session", why: "a study file says what is asked, whoever measures it."},
	{from: "lab/studyfile", to: "lab/engine/*", why: "a study file knows engines only by their contract."},
	{from: "lab/trace", to: "lab/engine/*", why: "a tracer knows engines only by their contract."},
	{from: "lab/memory", to: "lab/engine", why: "pages are read of any process, whoever started it."},
	{from: "lab/ruler", to: "lab", why: "the ruler is in every guest and carries nothing else there."},
	{from: "cmd/ruler", to: "lab/engine", why: "the ruler is in every guest and carries nothing else there."},

	{from: "desk/data", to: "desk", why: "folders are read first, and read once."},
	{from: "desk/words", to: "desk/terminal", why: "values become words before anyone looks at them."},
	{from: "desk/words", to: "desk/chart", why: "values become words before anyone looks at them."},
	{from: "desk/words", to: "desk/page", why: "values become words before anyone looks at them."},
	{from: "desk/words", to: "desk/show", why: "a kind of study has its words; nobody else has them."},
	{from: "desk/chart", to: "desk/show", why: "a kind of study hands values and texts to shapes."},
	{from: "desk/model", to: "desk/words", why: "what makes values knows no English."},
	{from: "desk/ladder", to: "desk/words", why: "what makes values knows no English."},
	{from: "desk/explain", to: "desk/words", why: "what makes values knows no English."},
	{from: "desk/claims", to: "desk/words", why: "what makes values knows no English."},
	{from: "desk/advise", to: "desk/words", why: "what makes values knows no English."},
	{from: "desk/fleet", to: "desk/words", why: "what makes values knows no English."},
}

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// below says whether an import path is what a pattern of [arrows] means.
func below(path, pattern string) bool {
	folder, ok := strings.CutPrefix(path, "tare/")
	if !ok {
		return false // not of this module
	}
	pattern, only := strings.CutSuffix(pattern, "/*")
	if pattern == "" {
		return true
	}
	return folder == pattern && !only || strings.HasPrefix(folder, pattern+"/")
}

func TestArrowsPointDown(t *testing.T) {
	used := make([]bool, len(arrows))
	for _, p := range packages(t) {
		for i, a := range arrows {
			if !below(p.ImportPath, a.from) {
				continue
			}
			used[i] = true
			imports := p.Imports
			if a.tests {
				imports = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			}
			for _, to := range imports {
				if to != p.ImportPath && below(to, a.to) && !below(to, a.from) && !below(to, "internal") { // internal is for tests
					t.Errorf("%s imports %s: %s", p.ImportPath, to, a.why)
				}
			}
		}
	}
	for i, a := range arrows {
		if !used[i] {
			t.Errorf("there is no package %s: its rule holds nothing", a.from)
		}
	}
}

// source is a Go file.
type source struct {
	*ast.File
	path  string
	test  bool // it is a test file
	files *token.FileSet
}

// at is the position of a node.
func (s source) at(n ast.Node) token.Position { return s.files.Position(n.Pos()) }

// sources are the Go files in a folder and below it.
func sources(t *testing.T, folder string) (all []source) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		all = append(all, source{file, path, strings.HasSuffix(path, "_test.go"), files})
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("no files of %s: %v", folder, err)
	}
	return all
}

// scripts/test gives the race detector what starts goroutines. It leaves out stats, yamlfile and desk, except desk/fleet: they start none.
func TestWhatIsNotTestedForRacesStartsNoGoroutine(t *testing.T) {
	read := 0
	for _, root := range []string{"desk", "stats", "yamlfile"} {
		for _, s := range sources(t, root) {
			if s.test || strings.HasPrefix(s.path, "desk/fleet/") {
				continue
			}
			read++
			ast.Inspect(s.File, func(n ast.Node) bool {
				call, _ := n.(*ast.SelectorExpr)
				if _, ok := n.(*ast.GoStmt); ok || call != nil && call.Sel.Name == "Go" {
					t.Errorf("%s starts a goroutine: have scripts/test run its package with the race detector", s.at(n))
				}
				return true
			})
		}
	}
	if read < 50 {
		t.Errorf("only %d files were read", read)
	}
}

// A promise whose test is gone is not kept.
func TestSpecificationNamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("docs/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/.]+) (Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 40 {
		t.Errorf("%d tests are named; is the form `FOLDER TEST` kept?", len(named))
	}
	for _, n := range named {
		files, err := filepath.Glob(filepath.Join(n[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			source, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(source), "\nfunc "+n[2]+"(")
		}) {
			t.Errorf("docs/specification.md names %s in %s, which is not there", n[2], n[1])
		}
	}
}

// A busy host may skip a test that needs a quiet one, so only a few tests may need it. No promise about records, changes to the host, leftovers or bad
// input rests on such a test.
func TestFewTestsNeedQuiet(t *testing.T) {
	text, err := os.ReadFile("docs/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	var promises strings.Builder
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		if strings.Contains("1345", section[:1]) {
			promises.WriteString(section)
		}
	}
	const most = 10
	var quiet []string
	for _, s := range sources(t, ".") {
		if !s.test || strings.HasPrefix(s.path, "internal/require/") {
			continue
		}
		for _, decl := range s.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				// require.Quiet, or the method of cmd/tare that calls it
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && strings.EqualFold(s.Sel.Name, "quiet") && !slices.Contains(quiet, f.Name.Name) {
					quiet = append(quiet, f.Name.Name)
				}
				return true
			})
		}
	}
	if len(quiet) == 0 || len(quiet) > most {
		t.Errorf("%d tests need a quiet host (%s), want 1 to %d", len(quiet), strings.Join(quiet, ", "), most)
	}
	for _, name := range quiet {
		if regexp.MustCompile(`\b` + name + "`").MatchString(promises.String()) {
			t.Errorf("%s needs a quiet host, and a promise of section 1, 3, 4 or 5 of docs/specification.md rests on it", name)
		}
	}
}

// Golden files are read by whoever reviews a change: they are of components, and few. Folders below testdata are inputs. What commands
// print of the sample folders is more, by name.
func TestGoldenFilesAreFew(t *testing.T) {
	for _, of := range []struct {
		what, pattern string
		most          int64
	}{
		{"the desk's golden files", "desk/*/testdata/*.*", 260_000},
		{"the golden files of the kinds of study", "desk/show/*/testdata/*.*", 50_000},
		{"the sample folders", "cmd/tare/testdata/samples/*/*.json*", 1_500_000},
		{"what is printed of each sample folder", "cmd/tare/testdata/samples/*/printed/*.*", 2_600_000},
		{"what is printed of several sample folders", "cmd/tare/testdata/samples/together/*.*", 150_000},
	} {
		files, err := filepath.Glob(of.pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", of.what, err)
		}
		sum := int64(0)
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			sum += info.Size()
		}
		if sum > of.most {
			t.Errorf("%s have %d bytes, more than %d: keep those of components, and assert on the rest", of.what, sum, of.most)
		}
	}
}

// A function that does one job is seldom long. Tests, which are lists of cases, may be.
func TestFunctionsDoOneJob(t *testing.T) {
	most := func(path string) int {
		for _, room := range []string{"lab/study", "lab/studyfile", "lab/crowd", "lab/measure", "desk/show"} {
			if strings.HasPrefix(path, room+"/") {
				return 80
			}
		}
		return 100
	}
	read := 0
	for _, s := range sources(t, ".") {
		if s.test {
			continue
		}
		read++
		for _, decl := range s.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := s.files.Position(f.End()).Line - s.at(f).Line + 1
			if most := most(s.path); lines > most {
				t.Errorf("%s %s has %d lines, more than %d: cut it by its jobs", s.path, f.Name.Name, lines, most)
			}
		}
	}
	if read < 300 {
		t.Errorf("only %d files were read", read)
	}
}
