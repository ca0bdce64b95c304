package explain_test

import (
	"fmt"
	"log"
	"math"

	"tare/desk/data"
	"tare/desk/explain"
)

// To what the overhead of each treatment is attributed.
func ExampleFrom() {
	s, err := data.Read([]string{"../export/testdata/made-before"}, data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	as, err := explain.From(s)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range as.Accounts {
		if t := a.Row.Treatment; a.Against == (explain.Against{}) && t.Platform == "cn" {
			fmt.Printf("%s %s, %s: overhead %.3f s\n", t.Platform, t.Engine, t.Provisioning, a.Overhead.Value)
			for _, p := range a.Parts {
				if math.Abs(p.Seconds.Value) >= 0.001 {
					fmt.Printf("  %s: %.3f s\n", p.Key, p.Seconds.Value)
				}
			}
		}
	}
	// Output:
	// cn docker, vanilla: overhead 0.047 s
	//   user: 0.012 s
	//   system: 0.001 s
	//   core: -0.012 s
	//   unexplained: 0.045 s
	// cn runc, vanilla: overhead 0.037 s
	//   user: 0.020 s
	//   system: -0.005 s
	//   core: 0.050 s
	//   unexplained: -0.027 s
	// cn runc, pinned: overhead -0.136 s
	//   user: 0.015 s
	//   system: -0.011 s
	//   core: -0.156 s
	//   unexplained: 0.016 s
}
