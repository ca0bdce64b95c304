package explain

import "tare/stats"

// excludesZero says whether there is an interval and 0 is not in it.
func excludesZero(e stats.Estimate) bool { return e.HasInterval() && (e.Low > 0 || e.High < 0) }
