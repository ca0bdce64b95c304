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
	s, err := data.Read([]string{"../export/testdata/made-before"}, data.Options{})
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
	// # Pinned runc container at 1/1GB, number 1 of 3 for ffmpeg{frames=12,preset=ultrafast,segments=1,width=160} on vm.
	// # Measured: execution time 0.147 (0.122 to 0.173) s.
	// # The CPU set 1 is what the guests had on vm: another host needs its own (lscpu -e).
	// # YOUR-IMAGE is a placeholder: write your image there.
	// # Measured with the engine runc: the overhead of another may differ.
	// docker run --cpuset-cpus=1 --memory=1g --memory-swap=1g --shm-size=512m YOUR-IMAGE
}
