package apply_test

import (
	"log"
	"os"

	"tare/desk/advise"
	"tare/desk/apply"
	"tare/desk/data"
)

// The best container as flags of docker run.
func ExampleWrite() {
	s, err := data.Read([]string{"../../cmd/tare/testdata/samples/timing"}, data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	a, err := advise.Of(s, advise.Options{Exclude: []string{"bm"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := apply.Write(os.Stdout, a, "docker", 0); err != nil {
		log.Fatal(err)
	}
	// Output:
	// # Docker with --cpus at 1/1GB, number 1 of 4 for cpu{millions=100} on vm.
	// # Measured: execution time 0.39 (0.20 to 0.58) s.
	// # The results do not distinguish it from crun with a CPU quota at 1/1GB, crun with a CPU set at 1/1GB and Docker with --cpuset-cpus at 1/1GB.
	// # YOUR-IMAGE is a placeholder: write your image there.
	// docker run --cpus=1 --memory=1g --memory-swap=1g --shm-size=512m YOUR-IMAGE
}
