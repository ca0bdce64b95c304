package data_test

import (
	"fmt"
	"log"

	"tare/desk/data"
)

// The ratio of each treatment that was measured against bare metal.
func ExampleRead() {
	s, err := data.Read([]string{"../export/testdata/made-before"}, data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range s.Rows {
		fmt.Println(r.Treatment.Platform, r.Treatment.Engine, r.Treatment.Provisioning, fmt.Sprintf("%.2f of %d rounds", r.Ratio, r.Rounds))
	}
	// Output:
	// bm   1.00 of 4 rounds
	// bm   1.21 of 4 rounds
	// cn docker vanilla 1.06 of 4 rounds
	// cn runc vanilla 1.02 of 4 rounds
	// cn runc pinned 0.47 of 4 rounds
}
