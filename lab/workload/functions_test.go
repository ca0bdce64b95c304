package workload

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/lab/ruler"
)

// answered writes an answer for the check, which must accept it and no other.
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
			m.refused(m.w.Check, "wrong answer: must be "+strconv.FormatUint(want, 10))
		}
	}
}

// The test computes the indices with the paper's algorithm, only from the file.
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

// Go's parser finds in the file what the check knows without parsing.
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

// dial connects to a running service.
func (m *micro) dial() net.Conn {
	m.t.Helper()
	c, err := net.Dial("tcp4", "127.0.0.1:"+m.values["port"])
	if err != nil {
		m.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	m.t.Cleanup(func() { c.Close() })
	return c
}

// asked sends a number and returns the answer, which has size bytes.
func asked(t *testing.T, c net.Conn, number uint64, bytes int) []byte {
	t.Helper()
	answer := make([]byte, bytes)
	_, err := c.Write(binary.LittleEndian.AppendUint64(nil, number))
	if err == nil {
		_, err = io.ReadFull(c, answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestMappedStore(t *testing.T) {
	m := serving(t, "mapped-store", map[string]string{"records": "1000", "operations": "3000"})
	mean, also, cause := m.w.Figures(ruler.Result{Stdout: m.must(m.w.Load.Command)})
	if cause != nil || mean <= 0 || also["p50"] <= 0 || also["p50"] > also["p99"] || math.Abs(mean*also["operations_per_second"]-1) > 0.01 {
		t.Errorf("%g s, %v, %s", mean, also, cause)
	}
	// The store answers a key that arrives in two parts once it is complete. Until then it answers others.
	slow := m.dial()
	if _, err := slow.Write([]byte{7, 0, 0}); err != nil {
		t.Fatal(err)
	}
	m.must(m.w.Load.Ready)
	if _, err := slow.Write(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 128)
	if _, err := io.ReadFull(slow, got); err != nil || binary.LittleEndian.Uint64(got) != 8 {
		t.Errorf("of key 7: % x, %v", got, err)
	}
	if none := asked(t, m.dial(), 1000, 128); !bytes.Equal(none, make([]byte, 128)) {
		t.Errorf("of a key that does not exist: % x", none)
	}
	// A store that has fewer keys than the load expects gives wrong answers.
	m.values["records"] = "100000"
	m.refused(m.w.Load.Command, "wrong answer: key ")
}

// The hot fifth of the keys is a fifth of the pages of the store's file, so that it is hot in pages as well (characterization, section 5.2.2).
func TestHotRecordsAreAFifthOfThePages(t *testing.T) {
	const records, page, size = 100000, 4096, 128
	m := serving(t, "mapped-store", map[string]string{"records": strconv.Itoa(records), "operations": "10"})
	file, err := os.ReadFile(filepath.Join(m.values["work"], "records"))
	if err != nil || len(file) != records*size {
		t.Fatalf("%d bytes, %v", len(file), err)
	}
	hot := map[int]bool{}
	for at := 0; at < len(file); at += size {
		if key := binary.LittleEndian.Uint64(file[at:]) - 1; key < records/5 {
			hot[at/page] = true
		}
	}
	if share := float64(len(hot)) * page / float64(len(file)); math.Abs(share-0.2) > 0.001 {
		t.Errorf("the hot fifth of the keys is in %.1f %% of the pages", 100*share)
	}
}

// The test computes the ranks by their definition, only from the graph's files.
func TestPageRank(t *testing.T) {
	m := serving(t, "pagerank", map[string]string{"megabytes": "1", "iterations": "5"})
	edges, err := os.ReadFile(filepath.Join(m.values["work"], "edges"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 8192
	in, degree := make([][]uint32, n), make([]float64, n)
	for e := range slices.Chunk(edges, 8) {
		from, to := binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:])
		in[to] = append(in[to], from)
		degree[from]++
	}
	ranks := make([]float64, n)
	for v := range ranks {
		ranks[v] = 1.0 / n
	}
	for range 5 {
		next, loose := make([]float64, n), 0.0
		for v, d := range degree {
			if d == 0 {
				loose += ranks[v]
			}
		}
		for v := range next {
			sum := loose / n
			for _, from := range in[v] {
				sum += ranks[from] / degree[from]
			}
			next[v] = 0.15/n + 0.85*sum
		}
		ranks = next
	}
	squares := 0.0
	for _, r := range ranks {
		squares += r * r
	}
	c := m.dial()
	answer := asked(t, c, 5, 16)
	double := func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
	if math.Abs(double(answer)-1) > 1e-9 || math.Abs(double(answer[8:])/squares-1) > 1e-9 {
		t.Errorf("sum %g and squares %g, want 1 and %g", double(answer), double(answer[8:]), squares)
	}
	c.Close() // the service serves one connection at a time
	if seconds, _, cause := m.w.Figures(ruler.Result{Stdout: m.must(m.w.Load.Command)}); cause != nil || seconds <= 0 {
		t.Errorf("%g s, %s", seconds, cause)
	}
	m.values["iterations"] = "4"
	m.refused(m.w.Load.Command, "wrong answer: the ranks have the sum 1 ")
}
