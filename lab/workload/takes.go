package workload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Takes is about how long one run takes. Tare uses it only to say in advance how long a study takes.
type Takes struct {
	OneCore time.Duration // on one core; 0: not known
	Serial  float64       // share of it that further cores do not shorten; below 0: not known
}

// ParseTakes reads a time and, after a comma, the share of it that further cores do not shorten: "60s", or "60s, 3% serial". An empty
// text is a time that is not known.
func ParseTakes(text string) (t Takes, err error) {
	wrong := fmt.Errorf("takes: %q: must be a time from 1ms to 168h, such as 1.5s, or with the share that further cores do not shorten: 60s, 3%% serial", text)
	first, rest, more := strings.Cut(text, ",")
	t.Serial = -1
	if text == "" {
		return t, nil
	}
	if t.OneCore, err = time.ParseDuration(strings.TrimSpace(first)); err != nil || t.OneCore < time.Millisecond || t.OneCore > 7*24*time.Hour {
		return t, wrong
	}
	if !more {
		return t, nil
	}
	share, ok := strings.CutSuffix(strings.TrimSpace(rest), "% serial")
	percent, err := strconv.ParseFloat(share, 64)
	if !ok || err != nil || !(percent >= 0 && percent <= 100) {
		return t, wrong
	}
	t.Serial = percent / 100
	return t, nil
}

// On is about how long a run takes on so many cores, from the least to the most.
func (t Takes) On(cores float64) (least, most time.Duration) {
	switch parallel := max(cores, 0.01); {
	case t.Serial >= 0:
		least = time.Duration(float64(t.OneCore) * (t.Serial + (1-t.Serial)/parallel))
		return least, least
	case cores > 1:
		return time.Duration(float64(t.OneCore) / min(cores, 16)), t.OneCore // if all cores help, and if none does
	default:
		return t.OneCore, time.Duration(float64(t.OneCore) / parallel)
	}
}

func (w *Workload) validateTakes() error {
	_, err := ParseTakes(w.Takes)
	return err
}

// Lasts is about how long a run with the parameters takes, according to the workload's takes.
func (w *Workload) Lasts(params map[string]string) Takes {
	t, err := ParseTakes(w.Takes)
	if err != nil {
		panic(errors.New("unreachable: validateTakes refuses " + w.Takes))
	}
	if w.Length == "" || params[w.Length] == w.Params[w.Length].Default {
		return t
	}
	of, oerr := strconv.Atoi(w.Params[w.Length].Default)
	n, nerr := strconv.Atoi(params[w.Length])
	if oerr != nil || nerr != nil || of <= 0 || n <= 0 { // 0 may stand for everything
		return Takes{Serial: -1}
	}
	t.OneCore = time.Duration(float64(t.OneCore) * float64(n) / float64(of))
	return t
}
