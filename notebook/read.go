package notebook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"tare/notebook/durable"
)

// maxWhole is the largest study.json or host.json that is read, in bytes.
const maxWhole = 64 << 20

// Folder is a study's folder as read. Its trials stay in the file until they are asked for.
type Folder struct {
	Dir      string
	Study    Study
	Host     Host
	Guests   []Guest
	Sessions []Session
	Torn     bool // its last trial was cut off, as by a kill, and is not given: the same run does it again
}

// Read reads a study's folder, which may be in use by a writer. What is not a study's folder, one of a newer Tare, and
// one that was changed or damaged are errors that name the file, the line and what is wrong. A last line without
// its end is passed over: it never was a finished record (Folder.Torn says so of a trial).
func Read(dir string) (*Folder, error) {
	f := &Folder{Dir: dir}
	path := filepath.Join(dir, studyFile)
	data, err := readWhole(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%s is not a results folder: it has no %s; name a folder that `tare run` or `tare bench` made", dir, studyFile)
	}
	if err != nil {
		return nil, err
	}
	if f.Study, err = parseStudy(data); err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	path = filepath.Join(dir, hostFile)
	if data, err = readWhole(path); err != nil {
		return nil, fmt.Errorf("%s is not a whole results folder: %w", dir, err)
	}
	if err := unmarshal(data, &f.Host); err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	if f.Guests, err = readLines[Guest](filepath.Join(dir, guestsFile), func(g *Guest) error {
		if g.ID == "" {
			return errors.New(`it has no "id"`)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if f.Sessions, err = readLines[Session](filepath.Join(dir, sessionsFile), func(s *Session) error {
		if s.Event != "start" && s.Event != "end" {
			return fmt.Errorf(`its "event" is %q and not "start" or "end"`, s.Event)
		}
		s.coded()
		return nil
	}); err != nil {
		return nil, err
	}
	f.Torn, err = torn(filepath.Join(dir, trialsFile))
	return f, err
}

// Exists says whether dir holds a study's folder that Open would go on with.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, studyFile))
	return err == nil
}

// torn says whether a file's last line has no end. That the file is missing is for who reads it to say.
func torn(path string) (bool, error) {
	f, err := durable.OpenToRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // only read: a failing close loses nothing
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return false, err
	}
	var end [1]byte
	if _, err := f.ReadAt(end[:], size-1); err != nil {
		return false, err
	}
	return end[0] != '\n', nil
}

func readWhole(path string) ([]byte, error) {
	f, err := durable.OpenToRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read: a failing close loses nothing
	data, err := io.ReadAll(io.LimitReader(f, maxWhole+1))
	if err == nil && len(data) > maxWhole {
		err = fmt.Errorf("%s is larger than %d bytes, which Tare never writes", path, maxWhole)
	}
	return data, err
}

// parseStudy reads study.json. Its errors begin with what follows the file's name.
func parseStudy(data []byte) (Study, error) {
	var s Study
	// The version first: in a newer format nothing else need be as expected.
	var v struct {
		Version *int   `json:"version"`
		Tare    string `json:"tare"`
	}
	if err := unmarshal(data, &v); err != nil {
		return s, err
	}
	if v.Version == nil || *v.Version < 1 {
		return s, fmt.Errorf(`: not a study of Tare's: "version" must be %d`, Version)
	}
	if *v.Version > Version {
		return s, fmt.Errorf(`: written by a newer Tare (%q, format %d): this one reads up to format %d; read it with a newer one`, v.Tare, *v.Version, Version)
	}
	if err := unmarshal(data, &s); err != nil {
		return s, err
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf(": %w", err)
	}
	return s, nil
}

// MaxTreatments is how many treatments a study may have. The largest shipped one has some hundreds. The desk compares each with each in places.
const MaxTreatments = 2000

// check says what of a study its trials could not be read with.
func (s *Study) check() error {
	if n := len(s.Treatments); n > MaxTreatments {
		return fmt.Errorf(`it has %d "treatments"; a study may have at most %d`, n, MaxTreatments)
	}
	if len(s.Treatments) == 0 {
		return errors.New(`it has no "treatments": must have at least one`)
	}
	seen := map[string]bool{}
	for i, t := range s.Treatments {
		if t.ID == "" || seen[t.ID] {
			return fmt.Errorf("treatment %d has the id %q: each must have an id of its own", i+1, t.ID)
		}
		seen[t.ID] = true
		for name := range t.Factors {
			if _, both := t.Params[name]; both {
				return fmt.Errorf("treatment %q has %q as a factor and as a parameter of its workload", t.ID, name)
			}
		}
		if _, ok := s.Metrics[t.Workload]; !ok {
			return fmt.Errorf(`treatment %q is of the workload %q, which has no entry in "metrics"`, t.ID, t.Workload)
		}
	}
	for _, w := range slices.Sorted(maps.Keys(s.Metrics)) {
		for _, m := range append([]Metric{s.Metrics[w]}, s.Also[w]...) {
			if err := m.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// unmarshal is json.Unmarshal with the line in its error, which begins with what follows the file's name.
// ReadHost reads a file with a host: host.json of a results folder, or what `tare doctor --format json` printed. A host without CPUs or
// memory is an error.
func ReadHost(path string) (h Host, err error) {
	data, err := readWhole(path)
	if err != nil {
		return h, err
	}
	if err := unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("%s%w", path, err)
	}
	if len(h.CPUs) == 0 || h.Memory <= 0 {
		return h, fmt.Errorf("%s: must have the CPUs and the memory of a host, as host.json of a results folder has them", path)
	}
	return h, nil
}

func unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	var at int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	default:
		return fmt.Errorf(": %w", err) // a time that is none: encoding/json does not say where
	}
	line := 1 + bytes.Count(data[:min(at, int64(len(data)))], []byte("\n"))
	return fmt.Errorf(":%d: not as Tare writes it (changed or damaged?): %w", line, err)
}

// Trials gives every trial in the order of the file, on the caller's goroutine, and ends at the first error of its
// own or of each. Lines are decoded in parallel; memory is bounded whatever the file's size.
func (f *Folder) Trials(each func(*Trial) error) error {
	path := filepath.Join(f.Dir, trialsFile)
	return open(path, func(r io.Reader) error { return f.trialsFrom(r, path, each) })
}

func (f *Folder) trialsFrom(r io.Reader, path string, each func(*Trial) error) error {
	known := map[string]bool{}
	for _, t := range f.Study.Treatments {
		known[t.ID] = true
	}
	metrics := f.Study.metrics()
	return lines(r, path, func(t *Trial) error {
		if !known[t.Treatment] {
			return fmt.Errorf("it is of the treatment %q, which %s does not have", t.Treatment, studyFile)
		}
		if t.Round < 0 || t.Index < 0 {
			return fmt.Errorf("its round %d and number %d: both must be 0 or more", t.Round, t.Index)
		}
		if m, renamed := metrics[t.Treatment]; renamed {
			t.rename(m)
		}
		return t.measurable()
	}, each)
}

// Bounds of a measured number other than 0, on both sides of it. With numbers beyond them the desk's ratios and squares would leave
// what a float64 can hold.
const (
	leastMeasured = 1e-70
	mostMeasured  = 1e70
)

// measurable says which number of a trial no measurement can have.
func (t *Trial) measurable() error {
	check := func(name string, v float64) error {
		if size := math.Abs(v); size != 0 && (size < leastMeasured || size > mostMeasured) {
			return fmt.Errorf("its %s is %g: must be 0, or from %g to %g", name, v, leastMeasured, mostMeasured)
		}
		return nil
	}
	for name, v := range t.Figures {
		if err := check(fmt.Sprintf("figure %q", name), v); err != nil {
			return err
		}
	}
	return cmp.Or(check("value", t.Value), check("elapsed_s", t.ElapsedS), check("host_s", t.HostS))
}

func readLines[T any](path string, check func(*T) error) ([]T, error) {
	var all []T
	err := open(path, func(r io.Reader) error {
		return lines(r, path, check, func(v *T) error {
			all = append(all, *v)
			return nil
		})
	})
	return all, err
}

// blockSize is how many bytes are decoded as one piece of work.
const blockSize = 1 << 20

// block is some whole lines of a file, and then what they say.
type block[T any] struct {
	data  []byte
	first int // number of its first line, from 1
	out   []T
	err   error // of the line after the last one in out, or of reading
	done  chan struct{}
}

// open gives one of a folder's files to read.
func open(path string, read func(io.Reader) error) error {
	f, err := durable.OpenToRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing: not a whole results folder", path)
	}
	if err != nil {
		return err
	}
	defer f.Close() // only read: a failing close loses nothing
	return read(f)
}

// lines decodes and checks each line of r, several blocks at once, and gives the results to each in order. The path is
// for errors.
func lines[T any](r io.Reader, path string, check func(*T) error, each func(*T) error) error {
	take := takerOf(reflect.TypeFor[T]())
	decoders := sync.Pool{New: func() any { return new(decoder) }}
	order := make(chan *block[T], runtime.GOMAXPROCS(0)) // in the order of the file: what the caller waits for
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)

	wg.Go(func() {
		defer close(order)
		split(r, func(data []byte, first int, err error) bool {
			b := &block[T]{data: data, first: first, err: err, done: make(chan struct{})}
			select {
			case order <- b:
			case <-stop:
				return false
			}
			wg.Go(func() {
				defer close(b.done)
				d := decoders.Get().(*decoder)
				b.decode(d, take, check)
				decoders.Put(d)
			})
			return true
		})
	})
	for b := range order {
		<-b.done
		for i := range b.out {
			if err := each(&b.out[i]); err != nil {
				return err
			}
		}
		if b.err != nil {
			return fmt.Errorf("%s%w", path, b.err)
		}
	}
	return nil
}

func (b *block[T]) decode(d *decoder, take taker, check func(*T) error) {
	b.out = make([]T, bytes.Count(b.data, []byte("\n")))
	rest := b.data
	for i := range b.out {
		end := bytes.IndexByte(rest, '\n')
		v := &b.out[i]
		var err error
		if end > MaxLine {
			err = fmt.Errorf("longer than %d bytes", MaxLine)
		} else {
			err = d.line(rest[:end], take, v)
		}
		if err == nil {
			err = check(v)
		}
		if err != nil {
			kind := strings.ToLower(reflect.TypeFor[T]().Name())
			b.err = fmt.Errorf(":%d: not a %s (changed or damaged? each line must be one JSON object, as Tare writes it): %w", b.first+i, kind, err)
			b.out = b.out[:i]
			break
		}
		rest = rest[end+1:]
	}
	b.data = nil
}

// split gives r in pieces of whole lines, each with the number of its first, until give says no. What follows the
// last line's end is not given.
func split(r io.Reader, give func(data []byte, first int, err error) bool) {
	first, size := 1, blockSize
	if f, is := r.(*os.File); is { // of thousands of folders most files are small
		if info, err := f.Stat(); err == nil && info.Size() < blockSize {
			size = int(info.Size()) + bytes.MinRead
		}
	}
	var rest []byte // a line's beginning
	for {
		buf := make([]byte, max(size, 2*len(rest)))
		n := copy(buf, rest)
		m, err := io.ReadFull(r, buf[n:])
		buf = buf[:n+m]
		end := bytes.LastIndexByte(buf, '\n') + 1
		rest = buf[end:]
		ended := err == io.EOF || err == io.ErrUnexpectedEOF
		if end > 0 && !give(buf[:end:end], first, nil) {
			return
		}
		first += bytes.Count(buf[:end], []byte("\n"))
		switch {
		case ended:
			return
		case err != nil:
			give(nil, first, fmt.Errorf(": %w", err))
			return
		case len(rest) > MaxLine:
			give(nil, first, fmt.Errorf(":%d: longer than %d bytes: each line must be one JSON object, as Tare writes it", first, MaxLine))
			return
		}
	}
}
