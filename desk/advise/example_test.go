package advise_test

import (
	"fmt"
	"log"

	"tare/desk/advise"
	"tare/desk/data"
)

// What to run FFmpeg on, where bare metal is not to be had.
func ExampleOf() {
	s, err := data.Read([]string{"../export/testdata/made-before"}, data.Options{})
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
	// cn runc pinned 1/1GB
	// cn runc vanilla 1/1GB
	// cn docker vanilla 1/1GB
}
