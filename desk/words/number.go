package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/stats"
)

// Count says how many of something: "1 round", "3 rounds".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Decimals is how many decimals a ratio deserves whose interval is so wide, from least to 6.
func Decimals(width float64, least int) int {
	if !(width > 0) || math.IsInf(width, 0) {
		return max(least, 2)
	}
	return min(max(int(math.Ceil(-math.Log10(width))), least), 6)
}

// Interval writes a ratio with its interval, "1.02 (1.00 to 1.04)", with as many decimals as the interval deserves.
func Interval(v, low, high float64) string {
	if !stats.Finite(v) {
		return "unknown"
	}
	if !stats.Finite(low) || !stats.Finite(high) {
		return fmt.Sprintf("%.2f (no interval)", v)
	}
	d := Decimals(high-low, 2)
	return fmt.Sprintf("%.*f (%.*f to %.*f)", d, v, d, low, d, high)
}

// Seconds writes a time in a unit that suits it, in three digits.
func Seconds(s float64) string {
	name, by := Scale(s)
	return fmt.Sprintf("%.3g %s", s*by, name)
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

// Percent writes a share in whole hundredths.
func Percent(share float64) string { return Hundredths(share) + " %" }

// Hundredths writes a share in hundredths.
func Hundredths(share float64) string { return Unsigned(fmt.Sprintf("%.0f", 100*share)) }

// Unsigned takes the sign from what was rounded to nothing.
func Unsigned(number string) string {
	if strings.Trim(number, "-0.") == "" {
		return strings.TrimPrefix(number, "-")
	}
	return number
}

// quantity writes a number in three digits, whole where it is large.
func quantity(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.3g", v)
}

// list puts names together: "a, b and c".
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
