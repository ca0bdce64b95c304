//go:build linux

package proc

import (
	"errors"
	"io/fs"
	"testing"
	"time"
)

func TestWhatTheHostIsShortOf(t *testing.T) {
	if d, err := parsePressure("some avg10=0.00 avg60=1.00 avg300=0.20 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7"); err != nil || d != 2500*time.Millisecond {
		t.Errorf("%v, %v", d, err)
	}
	if n, err := parseTasks("0.20 0.18 0.12 1/80 11206"); err != nil || n != 80 {
		t.Errorf("%d, %v", n, err)
	}
	if ran, waited, err := parseSchedstat("12 34 5"); err != nil || ran != 12 || waited != 34 {
		t.Errorf("%v, %v, %v", ran, waited, err)
	}
	if n, err := parseIO("rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5"); err != nil || n != (IO{4096, 8192, 5}) {
		t.Errorf("%+v, %v", n, err)
	}
	if now, most, err := Host.Tasks(); err != nil || now < 1 || most < now {
		t.Errorf("%d of %d, %v", now, most, err)
	}
	if _, err := Host.Pressure("cpu"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzParsePressure(f *testing.F) {
	f.Add("some avg10=0.00 total=25\nfull total=7")
	f.Add("some total=-1")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parsePressure(s); err == nil && d < 0 {
			t.Errorf("%v of %q", d, s)
		}
	})
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add("12 34 5")
	f.Fuzz(func(t *testing.T, s string) {
		if ran, waited, err := parseSchedstat(s); err == nil && (ran < 0 || waited < 0) {
			t.Errorf("%v, %v of %q", ran, waited, s)
		}
	})
}

func FuzzParseIO(f *testing.F) {
	f.Add("read_bytes: 1\nwrite_bytes: 2\ncancelled_write_bytes: 3")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseIO(s); err == nil && int64(d.Read+d.Written) < 0 {
			t.Errorf("%+v of %q", d, s)
		}
	})
}
