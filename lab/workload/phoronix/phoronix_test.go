package phoronix

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tare/internal/golden"
	"tare/lab/ruler"
	"tare/lab/workload"
)

// A profile made for this test, in the layout of the Phoronix Test Suite: a program of one file, an option, and a figure in the line after a heading.
const (
	definitionXML = `<?xml version="1.0"?>
<PhoronixTestSuite>
  <TestInformation>
    <Title>Count</Title>
    <AppVersion>1.2</AppVersion>
    <ResultScale>Numbers/s</ResultScale>
    <Proportion>HIB</Proportion>
  </TestInformation>
  <TestProfile>
    <SupportedPlatforms>Linux, BSD</SupportedPlatforms>
    <ExternalDependencies>build-utilities, zlib-development</ExternalDependencies>
  </TestProfile>
  <TestSettings>
    <Default><Arguments>-q</Arguments><PostArguments> -e</PostArguments></Default>
    <Option>
      <DisplayName>How Far</DisplayName>
      <Identifier>how-far</Identifier>
      <ArgumentPrefix>-n </ArgumentPrefix>
      <DefaultEntry>1</DefaultEntry>
      <Menu>
        <Entry><Name>To 1,000</Name><Value>1000 -s 1</Value></Entry>
        <Entry><Name>To 2,000</Name><Value>2000 -s 2</Value></Entry>
      </Menu>
    </Option>
  </TestSettings>
</PhoronixTestSuite>`
	resultsXML = `<PhoronixTestSuite>
  <ResultsParser>
    <OutputTemplate>    42         1000        #_RESULT_#            10440</OutputTemplate>
    <LineBeforeHint>Numbers/sec</LineBeforeHint>
  </ResultsParser>
</PhoronixTestSuite>`
	downloadsXML = `<PhoronixTestSuite><Downloads>
  <Package><URL>http://example.org/a/count.c, http://example.net/count.c</URL><SHA256>%x</SHA256></Package>
  <Package><URL>http://example.org/data</URL><FileName>numbers.txt</FileName><MD5>%x</MD5></Package>
  <Package><URL>http://example.org/count.exe</URL><MD5>00</MD5><PlatformSpecific>Windows</PlatformSpecific></Package>
</Downloads></PhoronixTestSuite>`
	source, numbers = "int main(void) { return 0; }\n", "1 2 3\n"
)

func profile() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"test-definition.xml": file(definitionXML), "results-definition.xml": file(resultsXML),
		"downloads.xml": file(fmt.Sprintf(downloadsXML, sha256.Sum256([]byte(source)), md5.Sum([]byte(numbers)))),
		"install.sh":    file("#!/bin/sh\ncc -o count count.c\n"), "count.c": file(source), "numbers.txt": file(numbers),
	}
}

// A profile becomes a workload that can be read and that has everything that the profile says.
func TestImport(t *testing.T) {
	p := profile()
	made, err := Import("count-1.0.2", p, p)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "workload.yaml", made.Files[workload.File])
	if want := "before\t-q\nhowfar=To_1_000\t-n\t1000\t-s\t1\nhowfar=To_2_000\t-n\t2000\t-s\t2\nafter\t-e\n"; string(made.Files["arguments.tsv"]) != want {
		t.Errorf("arguments %q, want %q", made.Files["arguments.tsv"], want)
	}
	if want := []string{"count.c", "numbers.txt"}; !slices.Equal(made.Inputs, want) {
		t.Errorf("inputs %v, want %v", made.Inputs, want)
	}
	w := imported(t, made)
	out := "count 1.2\nRuns    Size   Numbers/sec    Overhead\n   7   1000   123.5   9\n   8   1000  99  9\n"
	if v, _, cause := w.Figures(ruler.Result{Stdout: []byte(out)}); v != 123.5 || cause != nil || !w.Primary().MoreIsBetter() {
		t.Errorf("its figure is %v, %s; want 123.5", v, cause)
	}
}

// imported reads the workload as Tare reads a user's folder.
func imported(t *testing.T, made *Imported) *workload.Workload {
	t.Helper()
	folder := fstest.MapFS{}
	for name, text := range made.Files {
		folder[name] = &fstest.MapFile{Data: text}
	}
	w, err := workload.Read(folder, "it")
	if err != nil {
		t.Fatalf("%v in\n%s", err, made.Files[workload.File])
	}
	return w
}

// The error for a profile that cannot be imported says why.
func TestWhatCannotBeImported(t *testing.T) {
	for _, c := range []struct{ file, was, is, want string }{
		{"test-definition.xml", "Linux, BSD", "Windows", "it runs on Windows, but guests run Linux"},
		{"test-definition.xml", "</TestProfile>", "<RequiresDisplay>TRUE</RequiresDisplay></TestProfile>", "it draws on a display, but guests have none"},
		{"test-definition.xml", "</TestProfile>", "<RequiresInternet>TRUE</RequiresInternet></TestProfile>", "it needs the Internet, but guests have none"},
		{"test-definition.xml", "</TestProfile>", "<Extends>pts/other</Extends></TestProfile>", "it extends the profile pts/other, which Tare cannot import with it"},
		{"test-definition.xml", "zlib-development", "cuda", `it depends on "cuda", whose Debian packages are unknown: must be one of `},
		{"test-definition.xml", "1000 -s 1", "$(reboot)", "need a shell because of "},
		{"test-definition.xml", "To 2,000", "To 1.000", `its option "How Far" has the choice "To 1.000" twice`},
		{"test-definition.xml", "<Title>Count</Title>", "", "it has no title"},
		{"test-definition.xml", "</PhoronixTestSuite>", "", "test-definition.xml: XML syntax error"},
		{"test-definition.xml", "HIB", "MAYBE", "must be HIB or LIB"},
		{"results-definition.xml", "#_RESULT_#", "12", "must have one place for the figure"},
		{"results-definition.xml", "<LineBeforeHint>", "<DivideResultBy>2</DivideResultBy><LineBeforeHint>", "it reads a figure that is divided"},
		{"downloads.xml", "numbers.txt", "../numbers.txt", "must be the plain name of a file"},
		{"downloads.xml", "numbers.txt", "install.sh", "must be the plain name of a file"},
		{"downloads.xml", "numbers.txt", "other.txt", "other.txt is missing: fetch it from http://example.org/data"},
		{"numbers.txt", "1 2 3", "1 2 4", "numbers.txt is not the profile's file"},
		{"install.sh", "", "", "install.sh: file does not exist"},
	} {
		p := profile()
		if c.was == "" {
			delete(p, c.file)
		} else {
			text := string(p[c.file].Data)
			if !strings.Contains(text, c.was) {
				t.Fatalf("%s has no %q", c.file, c.was)
			}
			p[c.file] = &fstest.MapFile{Data: []byte(strings.Replace(text, c.was, c.is, 1))}
		}
		if _, err := Import("count-1.0.2", p, p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q: %v; want %s", c.file, c.is, err, c.want)
		}
	}
	p := profile()
	if _, err := Import("..", p, p); err == nil {
		t.Error("a profile without a name was imported")
	}
}

// A profile without results-definition.xml measures the run time of its program, if its figure is in seconds.
func TestATimeIsMeasured(t *testing.T) {
	p := profile()
	delete(p, "results-definition.xml")
	if _, err := Import("count", p, p); err == nil || !strings.Contains(err.Error(), `its figure, in "Numbers/s"`) {
		t.Errorf("numbers a second, which nothing reads: %v", err)
	}
	p["test-definition.xml"].Data = []byte(strings.NewReplacer("Numbers/s", "Seconds", "HIB", "LIB").Replace(definitionXML))
	made, err := Import("count", p, p)
	if err != nil {
		t.Fatal(err)
	}
	if m := imported(t, made).Primary(); m.Name != "execution time" || m.Unit != "s" || m.MoreIsBetter() {
		t.Errorf("%+v", m)
	}
}

// Expressions find the figures where the templates of such profiles have them.
func TestExpressions(t *testing.T) {
	for _, c := range []struct {
		p    parser
		key  string
		out  string
		want string // empty: none is found
	}{
		{parser{Template: "Time: #_RESULT_#"}, "RESULT", "Running\nTime: 4.125\n", "4.125"},
		{parser{Template: "#_RESULT_# k/s"}, "RESULT", "  1234.5 k/s\n", "1234.5"},
		{parser{Template: "#_RESULT_# k/s"}, "RESULT", "1234.5 s\n", ""},
		{parser{Template: "Function Rate\nCopy:  #_Copy_#  0.1\nScale: #_Scale_#  0.1", Key: "PTS_TEST_ARGUMENTS"}, "Scale", "Copy: 11.5 0.2\nScale:    22.5   0.3\n", "22.5"},
		{parser{Template: "Test took 5.0 seconds: #_RESULT_# MB/s", Line: "Test took"}, "RESULT", "Test took 7.25 seconds: 99.5 MB/s\n", "99.5"},
		{parser{Template: "file.bin at #_RESULT_# MB/s done", Line: "done"}, "RESULT", "other.bin at 8 MB/s done\nother.bin at 9 MB/s failed\n", "8"},
		{parser{Template: "score=#_RESULT_#", ToSpace: "="}, "RESULT", "score=1e3\n", "1e3"},
		{parser{Template: "#_RESULT_#", Before: "ops/s"}, "RESULT", "got 17 ops/s\n", "17"},
		{parser{Template: "#_RESULT_#", After: "total:"}, "RESULT", "total: 18\n", "18"},
	} {
		e := c.p.expression("#_" + c.key + "_#")
		re, err := regexp.Compile("(?m:" + e + ")")
		if err != nil {
			t.Errorf("%+v: %v", c.p, err)
			continue
		}
		got := ""
		if m := re.FindStringSubmatch(c.out); m != nil {
			got = m[1]
		}
		if got != c.want {
			t.Errorf("%q in %q is %q, want %q", e, c.out, got, c.want)
		}
	}
}

// Any profile is refused or becomes a workload that can be read.
func FuzzImport(f *testing.F) {
	f.Add("count-1.0", []byte(definitionXML), []byte(resultsXML), []byte(`<PhoronixTestSuite/>`))
	f.Add("x", []byte(strings.ReplaceAll(definitionXML, "How Far", "work")), []byte(`<P><ResultsParser><OutputTemplate>a[ #_R_# ]^-</OutputTemplate><TurnCharsToSpace>^]-\</TurnCharsToSpace></ResultsParser></P>`), []byte(``))
	f.Add("..", []byte(`<a>`), []byte(`<b/>`), []byte(`<P><Downloads><Package><FileName>../../x</FileName><MD5>1</MD5></Package></Downloads></P>`))
	f.Fuzz(func(t *testing.T, name string, definition, results, downloads []byte) {
		p := profile()
		p["test-definition.xml"], p["results-definition.xml"], p["downloads.xml"] = &fstest.MapFile{Data: definition}, &fstest.MapFile{Data: results}, &fstest.MapFile{Data: downloads}
		made, err := Import(name, p, p)
		if err != nil {
			return
		}
		for file := range made.Files {
			if !fs.ValidPath(file) || strings.Contains(file, "/") {
				t.Errorf("a file %q", file)
			}
		}
		for _, file := range made.Inputs {
			if strings.ContainsAny(file, "/\\") {
				t.Errorf("an input %q", file)
			}
		}
		imported(t, made)
	})
}
