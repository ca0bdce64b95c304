package words

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/stats"
)

// Count says how many of something there are: "1 trial", "3 trials", "12,000 trials", "2 processes".
func Count[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ch") || strings.HasSuffix(what, "ss") {
		what += "e"
	}
	return Thousands(n) + " " + what + "s"
}

// Thousands writes a whole number with commas: "12,000".
func Thousands[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// was writes a count with its verb: "1 round is", "3 rounds are".
func was(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return Count(n, what) + " are"
}

// List puts names together: "a, b and c".
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Printed writes a number as a paper prints it.
func Printed(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Decimals is how many decimals a ratio deserves in a sentence or a narrow table, whose interval is so wide: from 2 to 6.
func Decimals(width float64) int {
	if !(width > 0) || math.IsInf(width, 0) {
		return 2
	}
	return min(max(int(math.Ceil(-math.Log10(width))), 2), 6)
}

// Interval writes a ratio with its interval for a sentence, in as few digits as it can: "1.02 (1.00 to 1.04)".
func Interval(v, low, high float64) string { return measured(v, low, high, Decimals(high-low), "") }

// signed writes a change with its interval, all shares: "+2.1 % (+0.9 to +3.3)".
func signed(v, low, high float64) string {
	d := sidedPlaces(100*v, 100*low, 100*high, 3)
	mark := func(share float64) string {
		if share > 0 {
			return "+" + Number(100*share, d)
		}
		return Number(100*share, d)
	}
	return mark(v) + " % (" + mark(low) + " to " + mark(high) + ")"
}

// sidedPlaces is Places for a difference, capped at most. It adds decimals, up to two, so that an end other than zero does not round to zero.
func sidedPlaces(v, low, high float64, most int) int {
	d := min(Places(v, low, high), most)
	for _, end := range []float64{low, high} {
		for d < 2 && end != 0 && math.Abs(end)*math.Pow(10, float64(d)) < 0.5 {
			d++
		}
	}
	return d
}

// Places says how many decimals a value deserves: its distance to the nearer end of its interval is written with
// two digits where they are below 30, else with one. More would be read as knowledge.
func Places(v, low, high float64) int {
	half := math.Inf(1)
	for _, end := range []float64{high - v, v - low} {
		if end > 0 {
			half = math.Min(half, end)
		}
	}
	var d float64
	switch {
	case !math.IsInf(half, 0):
		size := math.Floor(math.Log10(half))
		d = 1 - size
		if half/math.Pow(10, size) >= 2.95 {
			d--
		}
	case v != 0 && stats.Finite(v):
		d = 2 - math.Floor(math.Log10(math.Abs(v)))
	default:
		return 0
	}
	// More than six digits in all are never an insight here.
	if v != 0 && stats.Finite(v) {
		d = math.Min(d, 5-math.Floor(math.Log10(math.Abs(v))))
	}
	return int(math.Max(0, math.Min(d, 9)))
}

// Number writes a value with so many decimals; what is not known as a dash.
func Number(v float64, decimals int) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "−∞"
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.HasPrefix(s, "-") {
		if strings.Trim(s, "-0.") == "" {
			return s[1:]
		}
		return "−" + s[1:]
	}
	return s
}

// Digits writes a value with so many significant digits.
func Digits(v float64, n int) string {
	d := 0
	if v != 0 && stats.Finite(v) {
		d = max(0, n-1-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	return Number(v, d)
}

// quantity writes a number in three digits, whole where it is large.
func quantity(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.3g", v)
}

// Bounds says an interval: "1.00 to 1.04", or in words where it has no end.
func Bounds(low, high float64, decimals int) string {
	switch {
	case math.IsNaN(low) || math.IsNaN(high):
		return "not known"
	case math.IsInf(low, 0) && math.IsInf(high, 0):
		return "without bounds"
	case math.IsInf(high, 0):
		return "above " + Number(low, decimals)
	case math.IsInf(low, 0):
		return "below " + Number(high, decimals)
	}
	return Number(low, decimals) + " to " + Number(high, decimals)
}

// Measured says a value with its interval, in all digits that are known: "1.02 s (1.00 to 1.04)".
func Measured(v, low, high float64, unit string) string {
	return measured(v, low, high, Places(v, low, high), unit)
}

func measured(v, low, high float64, decimals int, unit string) string {
	if math.IsNaN(v) {
		return "no value"
	}
	s := Number(v, decimals)
	if unit = Plain(unit); unit != "" && unit != "1" {
		s += " " + unit
	}
	if math.IsNaN(low) || math.IsNaN(high) {
		return s + " (no interval)"
	}
	return s + " (" + Bounds(low, high, decimals) + ")"
}

// unsigned turns a value below 0 with its interval around, so that words may say the direction.
func unsigned(v, low, high float64) (size, least, most float64, negative bool) {
	if v < 0 {
		return -v, -high, -low, true
	}
	return v, low, high, false
}

// Half writes a value and half of its interval's width, in the digits that are known, but at most so many decimals: "1.20",
// "0.03". Half is empty where the interval has no width.
func Half(v, low, high float64, most int) (value, half string) {
	d := min(Places(v, low, high), most)
	if w := (high - low) / 2; stats.Finite(w) {
		half = Number(w, d)
	}
	return Number(v, d), half
}

// PlusMinus says a value with half of its interval's width: "1.20 ± 0.03", with at most so many decimals.
func PlusMinus(v, low, high float64, most int) string {
	value, half := Half(v, low, high, most)
	return value + " ± " + cmp.Or(half, "?")
}

// Signed puts a plus before a number that is above 0 as it is written.
func Signed(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if strings.HasPrefix(s, "−") || strings.Trim(first, "0.–") == "" {
		return s
	}
	return "+" + s
}

// Scale is the unit that suits a time, and what seconds are multiplied by for it.
func Scale(seconds float64) (name string, by float64) {
	switch s := math.Abs(seconds); {
	case s == 0 || s >= 1:
		return "s", 1
	case s < 1e-3:
		return "µs", 1e6
	}
	return "ms", 1e3
}

// Duration says a duration with the unit that suits it and three digits.
func Duration(s float64) string {
	if math.IsNaN(s) {
		return "–"
	}
	unit, by := Scale(s)
	return Digits(s*by, 3) + " " + unit
}

// Bytes says a size in binary units.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " " + units[i]
}

// Percent writes a share with at most so many decimals: "12.5 %".
func Percent(share float64, decimals int) string {
	s := Number(100*share, decimals)
	if decimals > 0 {
		s = strings.TrimSuffix(s, ".0")
	}
	return s + " %"
}
