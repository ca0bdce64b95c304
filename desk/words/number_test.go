package words

import (
	"fmt"
	"math"
	"testing"

	"tare/notebook"
)

func TestMeasured(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		v, low, high float64
		unit, want   string
	}{
		{1.31, 1.27, 1.35, "", "1.31 (1.27 to 1.35)"},
		{1.0204, 1.0004, 1.0404, "", "1.020 (1.000 to 1.040)"},
		{3.9, 3.853, 3.947, "s", "3.90 s (3.85 to 3.95)"},
		{58.9, 55.4, 62.4, "s", "59 s (55 to 62)"},
		{1234567, 1200000, 1270000, "op/s", "1234567 op/s (1200000 to 1270000)"},
		{1.01, 0.99, 9, "", "1.010 (0.990 to 9.000)"},
		{1.5, -inf, inf, "", "1.50 (without bounds)"},
		{1.5, 1.2, inf, "", "1.5 (above 1.2)"},
		{1.5, nan, nan, "s", "1.50 s (no interval)"},
		{2, 2, 2, "s", "2.00 s (2.00 to 2.00)"},
		{0, 0, 0, "s", "0 s (0 to 0)"},
		{nan, nan, nan, "s", "no value"},
		{0.000123, 0.000121, 0.000125, "s", "0.0001230 s (0.0001210 to 0.0001250)"},
	} {
		if got := Measured(c.v, c.low, c.high, c.unit); got != c.want {
			t.Errorf("%g (%g to %g): %q, want %q", c.v, c.low, c.high, got, c.want)
		}
	}
}

func TestNumbersInWords(t *testing.T) {
	for got, want := range map[string]string{
		PlusMinus(1.2, 1.17, 1.23, 9):        "1.20 ± 0.03",
		PlusMinus(1.2, math.Inf(-1), 2, 9):   "1.2 ± ?",
		PlusMinus(1.2345, 1.2344, 1.2346, 2): "1.23 ± 0.00",
		Signed("0.42 ± 0.03"):                "+0.42 ± 0.03",
		Signed("−0.42 ± 0.03"):               "−0.42 ± 0.03",
		Signed("0.00 ± 0.03"):                "0.00 ± 0.03",
		Number(-0.001, 2):                    "0.00",
		Number(-1.5, 1):                      "−1.5",
		Number(math.Inf(-1), 1):              "−∞",
		Duration(4.33e-4):                    "433 µs",
		Duration(0.0512):                     "51.2 ms",
		Duration(12.3):                       "12.3 s",
		Bytes(24 << 30):                      "24 GiB",
		Bytes(1536):                          "1.5 KiB",
		Percent(0.125, 1):                    "12.5 %",
		Percent(0.125, 0):                    "12 %",
		Interval(1.0204, 1.0004, 1.0404):     "1.02 (1.00 to 1.04)",
		Count(1, "trial"):                    "1 trial",
		Count(12000, "trial"):                "12,000 trials",
		Digits(math.Inf(1), 3):               "∞",
		Sentence("it is within ± 5 %"):       "It is within ±\u00a05\u00a0%.",
		Stop("runc costs more"):              "runc costs more.",
		Plain("a\x1b[31m\u202eb\x00"):        "a [31m b",
		PlainLines("a:\r\n  - b\x07\n"):      "a:\n  - b",
		Work(notebook.Treatment{Workload: "w", Params: map[string]string{"b": "2"}, Factors: map[string]string{"a": "1"}}): "w (a=1, b=2)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// One treatment as tables name it, where there is little room, and in a sentence.
func ExampleEnvironment() {
	t := notebook.Treatment{Platform: notebook.CN, Engine: "docker", Provisioning: notebook.Pinned, Network: notebook.NetHost}
	fmt.Println(Environment(t, false))
	fmt.Println(Environment(t, true))
	fmt.Println(Short(t, false))
	fmt.Println(InSentence(t, false))
	// Output:
	// Docker, CPU set (--cpuset-cpus)
	// Docker, CPU set (--cpuset-cpus), network host
	// Docker, CPU set
	// Docker with --cpuset-cpus
}
