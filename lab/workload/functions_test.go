package workload

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// answered writes an answer for the check, which must be met by it and by no other.
func (m *micro) answered(want uint64) {
	m.t.Helper()
	answer := filepath.Join(m.values["scratch"], "answer")
	for _, c := range []struct {
		text string
		good bool
	}{{strconv.FormatUint(want, 10), true}, {strconv.FormatUint(want+1, 10), false}, {"", false}} {
		if err := os.WriteFile(answer, []byte(c.text), 0o644); err != nil {
			m.t.Fatal(err)
		}
		if c.good {
			m.must(m.w.Check)
		} else {
			m.refused(m.w.Check, "wrong answer: "+strconv.FormatUint(want, 10))
		}
	}
}

// The indices by the paper's algorithm, from the file alone.
func TestHashing(t *testing.T) {
	for form, taken := range map[string]int{"dense": 128, "sparse": 25} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			m := newMicro(t, "hashing", map[string]string{"form": form, "megabytes": "1", "rounds": "2"})
			m.must(m.w.Command)
			m.must(m.w.Check)
			keys, err := os.ReadFile(filepath.Join(m.values["work"], "keys"))
			if err != nil {
				t.Fatal(err)
			}
			if len(keys) != 1<<20 {
				t.Fatalf("%d bytes of keys", len(keys))
			}
			x := uint64(42)
			for page := 0; page < len(keys); page += 4096 {
				for k := range taken {
					h := uint32(0)
					for _, c := range keys[page+k*32:][:32] {
						h = uint32(c) + h*65599
					}
					x = lcg(x) + uint64(h%uint32(len(keys)/32))
				}
			}
			got, err := os.ReadFile(filepath.Join(m.values["scratch"], "answer"))
			if err != nil || strings.TrimSpace(string(got)) != strconv.FormatUint(x, 10) {
				t.Errorf("answer %s, %v, want %d", got, err, x)
			}
			m.answered(x)
		})
	}
}

// What the check knows without parsing is what Go's parser finds in the file.
func TestURIsAreAsTheyWereMade(t *testing.T) {
	for form, last := range map[string]int{"dense": 4096, "sparse": 819} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			m := newMicroOf(t, "uriparser", map[string]string{"form": form, "megabytes": "1"}, []string{"{work}/uris", "make", "{megabytes}", "{scratch}/lines"})
			text, err := os.ReadFile(filepath.Join(m.values["work"], "lines"))
			if err != nil {
				t.Fatal(err)
			}
			fold, n := uint64(42), 0
			token := func(s string) {
				for _, c := range []byte(s) {
					fold = 33*fold + uint64(c)
				}
				fold *= 33
			}
			for page := range slices.Chunk(text, 4096) {
				for used := 0; ; {
					line, _, whole := bytes.Cut(page[used:], []byte("\n"))
					if used += len(line) + 1; !whole || len(line) == 0 || used > last {
						break
					}
					u, err := url.Parse(string(line))
					if err != nil {
						t.Fatal(err)
					}
					n++
					token(u.Scheme)
					token(u.Hostname())
					token(u.Port())
					for _, s := range strings.Split(u.Path, "/")[1:] {
						token(s)
					}
					if u.RawQuery != "" {
						token(u.RawQuery)
					}
					if u.Fragment != "" {
						token(u.Fragment)
					}
				}
			}
			if most := len(text) / 40; n < len(text)/4096*last/100 || n > most {
				t.Errorf("%d URIs in %d bytes", n, len(text))
			}
			m.answered(fold)
		})
	}
}
