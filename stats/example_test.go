package stats_test

import (
	"fmt"

	"tare/stats"
)

// How many times as long the work takes in a container, from the means of four rounds of each.
func ExampleRatio() {
	container := []float64{1.10, 1.12, 1.09, 1.11}
	metal := []float64{1.00, 1.01, 0.99, 1.00}
	q := stats.Ratio(container, metal, stats.Sure(0))
	fmt.Printf("%.2f (%.2f to %.2f)\n", q.Value, q.Low, q.High)
	// Output:
	// 1.10 (1.10 to 1.11)
}
