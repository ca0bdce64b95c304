package notebook

import (
	"strings"
	"testing"
)

func TestPulls(t *testing.T) {
	for _, text := range []string{"no", "gzip:1", "none:8", "zstd:100", "estargz:8"} {
		if p, err := ParsePull(text); err != nil || p.Text() != text || p.None() != (text == "no") {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "gzip", "gzip:", "gzip:0", "gzip:101", "gzip:08", "gzip:+8", "lzma:1", "8", "gzip:8:2"} {
		if p, err := ParsePull(text); err == nil || !strings.Contains(err.Error(), "such as gzip:8") {
			t.Errorf("%q: %+v, %v; want an error that says what is allowed", text, p, err)
		}
	}
	of := Treatment{Factors: map[string]string{FactorPull.Name: "gzip:8"}}
	if p := PullOf(of); p != (Pull{CompressionGzip, 8}) {
		t.Errorf("%+v", p)
	}
	if p := PullOf(Treatment{}); !p.None() {
		t.Errorf("without the factor: %+v", p)
	}
}

func FuzzParsePull(f *testing.F) {
	f.Add("gzip:8")
	f.Add("no")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePull(text); err == nil && p.Text() != text {
			t.Errorf("%q is %+v, which is %q", text, p, p.Text())
		}
	})
}
