package advise_test

import (
	"fmt"
	"log"

	"tare/desk/advise"
	"tare/desk/data"
)

// What to run the work on, where bare metal is not to be had.
func ExampleOf() {
	s, err := data.Read([]string{"../../cmd/tare/testdata/samples/timing"}, data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	a, err := advise.Of(s, advise.Options{Exclude: []string{"bm"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range a.Rankings {
		for _, c := range r.Choices {
			t := c.Treatment
			fmt.Println(t.Platform, t.Engine, t.Provisioning, t.Instance.Name)
		}
	}
	// Output:
	// cn docker vanilla 1/1GB
	// cn crun vanilla 1/1GB
	// cn crun pinned 1/1GB
	// cn docker pinned 1/1GB
}
