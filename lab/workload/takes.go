package workload

import (
	"fmt"
	"strconv"
	"time"
)

func (w *Workload) validateTakes() error {
	if w.Takes == "" {
		return nil
	}
	if d, err := time.ParseDuration(w.Takes); err != nil || d < time.Millisecond || d > 7*24*time.Hour {
		return fmt.Errorf("takes: %q: must be a time from 1ms to 168h, such as 1.5s", w.Takes)
	}
	return nil
}

// Lasts is about how long a run with the parameters takes on one core, according to the workload's takes; 0 if it has none.
func (w *Workload) Lasts(params map[string]string) time.Duration {
	d, err := time.ParseDuration(w.Takes)
	if err != nil || w.Length == "" || params[w.Length] == w.Params[w.Length].Default {
		return d // 0 if takes is empty; validateTakes refuses wrong texts
	}
	of, oerr := strconv.Atoi(w.Params[w.Length].Default)
	n, nerr := strconv.Atoi(params[w.Length])
	if oerr != nil || nerr != nil || of <= 0 || n <= 0 { // 0 may stand for everything
		return 0
	}
	return time.Duration(float64(d) * float64(n) / float64(of))
}
