package origin

import (
	"slices"
	"strings"
	"testing"
)

func host(name string) (string, bool) {
	value, set := map[string]string{"HOME": "/root", "EMPTY": ""}[name]
	return value, set
}

func TestParseEnvFile(t *testing.T) {
	text := "\uFEFF# comment\n\n  A=1 \nB='x' # y\r\nHOME\nNONE\nEMPTY\nC=a=b\nD=\n"
	for _, c := range []struct {
		parse func(string, Lookup) ([]string, error)
		want  []string
	}{
		{ParseEnvFile, []string{"A=1 ", "B='x' # y", "HOME=/root", "EMPTY=", "C=a=b", "D="}},
		{ParseDotEnv, []string{"A=1", "B=x", "HOME=/root", "EMPTY=", "C=a=b", "D="}},
	} {
		if got, err := c.parse(text, host); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"A=1\n=2":                     `2: "=2": must be KEY=VALUE, with no blank in KEY`,
		"export A=1":                  `1: "export A=1": must be KEY=VALUE, with no blank in KEY`,
		"A=\xff":                      "1: the file is not UTF-8 text",
		"A=\x00":                      "1: A: a zero byte is not allowed",
		strings.Repeat("A=1\n", 5000): "4097: more than 4096 variables",
	} {
		if _, err := ParseEnvFile(text, host); err == nil || err.Error() != want {
			t.Errorf("%.40q: %v; want %s", text, err, want)
		}
	}
	if _, err := ParseDotEnv("A='x", host); err == nil || !strings.HasPrefix(err.Error(), "1: ") {
		t.Error(err)
	}
}

// Whatever a file holds, what is read of it can be given to a process.
func FuzzParseEnvFile(f *testing.F) {
	for _, seed := range []string{"", "A=1\n#x\n  B='2' # c\r\nHOME\n", "=x", "A", "\xff", "A=\"x\\n\" y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string, Lookup) ([]string, error){ParseEnvFile, ParseDotEnv} {
			env, _ := parse(text, host)
			for _, kv := range env {
				if strings.IndexByte(kv, '=') <= 0 || strings.ContainsRune(kv, 0) {
					t.Errorf("%q gives %q", text, kv)
				}
			}
		}
	})
}
