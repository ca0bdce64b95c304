package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"tare/desk/ladder"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Staircase writes a staircase as a CSV table: a line for each rung, gaps included. What is not known is empty.
func Staircase(w io.Writer, c *ladder.Staircase) error {
	out := csv.NewWriter(w)
	f := func(v float64) string {
		if !stats.Finite(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	lines := [][]string{{"workload", "params", "instance", "host", "rung", "treatment", "rounds", "mean", "mean_low", "mean_high", "unit",
		"ratio", "ratio_low", "ratio_high", "rung_below", "own_rounds", "own", "own_low", "own_high", "own_with", "emulated", "doubtful", "told", "missing",
		"sum", "sum_low", "sum_high", "of_control_group", "of_control_group_low", "of_control_group_high"}}
	for _, r := range c.Rungs {
		mean, low, high, id, n := math.NaN(), math.NaN(), math.NaN(), r.Treatment.ID, 0
		if r.Row != nil {
			mean, low, high, n = r.Row.Mean, r.Row.MeanLow, r.Row.MeanHigh, r.Row.Rounds
		}
		below, missing := "", ""
		sum, _ := c.Model.Of(r)
		if r.Missing != nil {
			missing = words.Doubt(r.Missing)
		}
		if r.Below != nil {
			below = r.Below.Name
		}
		lines = append(lines, []string{c.Workload, notebook.Label("", c.Work().Assigned()), c.Instance.Name, c.Host, r.Name, id, strconv.Itoa(n), f(mean), f(low), f(high), c.Metric.Unit,
			f(r.Ratio.Value), f(r.Ratio.Low), f(r.Ratio.High), below, strconv.Itoa(r.Own.N), f(r.Own.Value), f(r.Own.Low), f(r.Own.High), strings.Join(r.With, " "),
			strconv.FormatBool(r.Emulated), strconv.FormatBool(r.Doubtful), strconv.FormatBool(r.Significant), missing,
			f(sum.Predicted), f(sum.PLow), f(sum.PHigh), f(sum.Measured), f(sum.MLow), f(sum.MHigh)})
	}
	if err := out.WriteAll(lines); err != nil {
		return fmt.Errorf("writing a staircase as CSV: %w", err)
	}
	return nil
}
