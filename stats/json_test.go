package stats_test

import (
	"encoding/json"
	"math"
	"testing"

	"tare/stats"
)

func TestJSONHasNullForWhatIsNoNumber(t *testing.T) {
	for _, c := range []struct {
		of   any
		want string
	}{
		{stats.Mean([]float64{2}, stats.Sure(0)), `{"value":2,"low":null,"high":null,"n":1}`},
		{stats.Quotient{Value: 1e-7, Low: math.Inf(-1), High: math.Inf(1), N: 3}, `{"value":1e-7,"low":null,"high":null,"n":3}`},
		{stats.NoRatio, `{"value":null,"low":null,"high":null,"n":0}`},
		{[]stats.Number{1.5, stats.Number(math.NaN())}, `[1.5,null]`},
	} {
		if got, err := json.Marshal(c.of); err != nil || string(got) != c.want {
			t.Errorf("%v is %s (%v), want %s", c.of, got, err, c.want)
		}
	}
}
