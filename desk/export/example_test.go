package export_test

import (
	"bytes"
	"fmt"
	"log"
	"strings"

	"tare/desk/export"
)

// The trials of a folder as CSV.
func ExampleWrite() {
	csv, err := export.FormatOf("csv")
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	if err := export.Write(&out, []string{"testdata/made-before"}, csv); err != nil {
		log.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	fmt.Println(len(lines)-2, "trials")
	fmt.Println(strings.Join(strings.Split(lines[0], ",")[:6], ","))
	// Output:
	// 60 trials
	// folder,study,host_id,host,treatment,workload
}
