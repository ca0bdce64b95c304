package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/stats"
)

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

// Short writes a published number as it was published, without zeros at its end.
func Short(v float64) string { return Number(v, published(v)) }

func published(v float64) int {
	_, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
	return len(fraction)
}

// Digits writes a value with so many significant digits.
func Digits(v float64, n int) string {
	d := 0
	if v != 0 && stats.Finite(v) {
		d = max(0, n-1-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	return Number(v, d)
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

// Measured says a value with its interval: "1.02 s (1.00 to 1.04)".
func Measured(v, low, high float64, unit string) string {
	if math.IsNaN(v) {
		return "no value"
	}
	d := Places(v, low, high)
	s := Number(v, d)
	if unit = Plain(unit); unit != "" {
		s += " " + unit
	}
	if math.IsNaN(low) || math.IsNaN(high) {
		return s + " (no interval)"
	}
	return s + " (" + Bounds(low, high, d) + ")"
}

// PlusMinus says a value with half of its interval's width: "1.20 ± 0.03". At most so many decimals; below 0: as many
// as it deserves.
func PlusMinus(v, low, high float64, most int) string {
	d := Places(v, low, high)
	if most >= 0 {
		d = min(d, most)
	}
	half := (high - low) / 2
	if !stats.Finite(half) {
		return Number(v, d) + " ± ?"
	}
	return Number(v, d) + " ± " + Number(half, d)
}

// Signed puts a plus before a number that is above 0 as it is written.
func Signed(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if strings.HasPrefix(s, "−") || strings.Trim(first, "0.–") == "" {
		return s
	}
	return "+" + s
}

// Duration says a duration with the unit that suits it and three digits.
func Duration(s float64) string {
	switch a := math.Abs(s); {
	case math.IsNaN(s):
		return "–"
	case a == 0:
		return "0 s"
	case a < 1e-3:
		return Digits(s*1e6, 3) + " µs"
	case a < 1:
		return Digits(s*1e3, 3) + " ms"
	}
	return Digits(s, 3) + " s"
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

// Share says a share: "12.5 %".
func Share(share float64) string {
	return Tight(strings.TrimSuffix(Number(100*share, 1), ".0") + " %")
}
