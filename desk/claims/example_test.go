package claims_test

import (
	"fmt"
	"log"

	"tare/desk/claims"
	"tare/desk/data"
)

// A claim of one's own, tested against a results folder.
func ExampleJudge() {
	s, err := data.Read([]string{"../export/testdata/made-before"}, data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	all, err := claims.Parse("mine.yaml", []byte(`
paper: my own findings
groups:
- name: Containers
  about: {workload: ffmpeg}
  claims:
  - id: free
    place: section 1
    finding: A container costs FFmpeg next to nothing.
    tolerance: A twentieth is nothing here.
    hypothesis:
      ratio: {of: {platform: cn, provisioning: vanilla}, sizes: each, equal: 5%}
`))
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range claims.Judge(s, all) {
		fmt.Println(v.Claim.ID+":", v.Answer)
	}
	// Output:
	// free: not decided
}
