package price

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"tare/notebook"
	"tare/notebook/notebooktest"
)

func list(t *testing.T, lines ...string) *List {
	t.Helper()
	l, err := Read(strings.NewReader("of,unit,price,currency\n" + strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// An instance costs the price of its type, or those of its cores, memory and share of a host, and its licences.
func TestHourly(t *testing.T) {
	docker, vm := notebooktest.Treatment("cn docker pinned 2/4GB"), notebooktest.Treatment("vm qemu kvm 2/4GB")
	named := notebooktest.Treatment("bm large")
	for _, c := range []struct {
		lines []string
		of    notebook.Treatment
		want  float64
	}{
		{[]string{"2/4GB,instance-hour,0.5,EUR"}, docker, 0.5},
		{[]string{"2/4GB,instance-hour,0.5,EUR", "*,core-hour,9,EUR", "*,host-hour,9,EUR"}, docker, 0.5},
		{[]string{"2/4096MB,instance-hour,0.5,EUR"}, docker, 0.5},
		{[]string{"large,instance-month,730.5,EUR"}, named, 1},
		{[]string{"*,core-hour,0.1,EUR", "*,gb-hour,0.01,EUR"}, docker, 0.24},
		{[]string{"*,core-hour,0.1,EUR", "docker,core-hour,0.2,EUR"}, docker, 0.4},
		{[]string{"*,core-hour,0.1,EUR", "docker,core-hour,0.2,EUR"}, vm, 0.2},
		{[]string{"*,host-year,8766,EUR"}, docker, 0.25},
		{[]string{"2/4GB,instance-hour,0.5,EUR", "vm,licence-host-year,8766,EUR"}, vm, 0.75},
		{[]string{"2/4GB,instance-hour,0.5,EUR", "vm,licence-core-year,8766,EUR"}, vm, 2.5},
		{[]string{"2/4GB,instance-hour,0.5,EUR", "vm,licence-host-year,8766,EUR"}, docker, 0.5},
		{[]string{"container,core-hour,0.1,EUR"}, docker, 0.2},
		{[]string{"2/4GB,instance-hour,0,EUR"}, docker, 0},
	} {
		if got, err := list(t, c.lines...).Hourly(c.of, 4); err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%q: %s costs %g, %v; want %g", c.lines, c.of.ID, got, err, c.want)
		}
	}
	if _, err := list(t, "1/1GB,instance-hour,1,EUR", "vm,licence-host-year,1,EUR").Hourly(docker, 4); !errors.Is(err, ErrNoPrice) {
		t.Errorf("a size without a price: %v", err)
	}
	if _, err := list(t, "cn,core-hour,1,EUR", "docker,core-hour,1,EUR").Hourly(docker, 4); err == nil || !strings.Contains(err.Error(), "lines 2 and 3") {
		t.Errorf("two prices: %v", err)
	}
	if got := list(t, "dokcer,core-hour,1,EUR", "vm,core-hour,1,EUR", "*,gb-hour,1,EUR", "9/9GB,instance-hour,1,EUR").Unknown([]notebook.Treatment{vm}); len(got) != 1 || got[0] != "line 2 (dokcer, core-hour)" {
		t.Errorf("unused lines: %q", got)
	}
}

// What is wrong with a list is said in one line, with its place.
func TestBadLists(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "has no prices",
		"of,unit,price,currency\n":      "has no prices",
		"name,price\nx,1\n":             `line 1: is "name,price": must be of,unit,price,currency`,
		"of,unit,price,currency\nx,1\n": "line 2: has 2 fields",
		"of,unit,price,currency\n\"x\n": "parse error",
		"of,unit,price,currency\n*,core-day,1,USD\n":                           `line 2: unit "core-day": must be one of instance-hour, `,
		"of,unit,price,currency\n*,core-hour,1,5,USD\n":                        "line 2: has 5 fields",
		"of,unit,price,currency\n*,core-hour,-1,USD\n":                         `price "-1": must be a number from 0`,
		"of,unit,price,currency\n*,core-hour,NaN,USD\n":                        `price "NaN"`,
		"of,unit,price,currency\n*,core-hour,1,\n":                             "currency is empty",
		"of,unit,price,currency\n,core-hour,1,USD\n":                           "of is empty",
		"of,unit,price,currency\n*,instance-hour,1,USD\n":                      "needs an instance type",
		"of,unit,price,currency\n*,core-hour,1,USD\n*,gb-hour,1,EUR\n":         `line 3: currency "EUR": must be "USD"`,
		"of,unit,price,currency\n*,core-hour,1,USD\n#\n*,core-hour,2,USD\n":    `line 4: "*" has a price in core-hour in line 2 already`,
		"of,unit,price,currency\n" + strings.Repeat("# long\n", mostBytes/7+1): "is longer than",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// The example can be read.
func TestExample(t *testing.T) {
	f, err := os.Open("../../examples/prices.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := Read(f)
	if err != nil || l.Currency != "USD" {
		t.Fatal(l, err)
	}
	for _, words := range []string{"bm 1/1GB", "cn docker 0.5/2GB", "vm qemu kvm 2/4GB"} {
		if v, err := l.Hourly(notebooktest.Treatment(words), 2); err != nil || !(v > 0) {
			t.Errorf("%s: %g, %v", words, v, err)
		}
	}
}

// No list makes a price that is none.
func FuzzRead(f *testing.F) {
	f.Add("of,unit,price,currency\n*,core-hour,0.1,USD\nvm,licence-host-year,350,USD\n2/4GB,instance-hour,1e3,USD\n")
	f.Add("of,unit,price,currency\n\"*\",gb-month,0x1p-3,\"U,D\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, words := range []string{"bm 1/1GB", "cn docker pinned 2/4GB", "vm qemu kvm large"} {
			if v, err := l.Hourly(notebooktest.Treatment(words), 2); err == nil && !(v >= 0 && !math.IsInf(v, 0)) {
				t.Errorf("%q: %s costs %g", text, words, v)
			}
		}
	})
}
