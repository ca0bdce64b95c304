package notebook_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tare/notebook"
)

// A study's folder is written a line at a time, and read as a whole.
func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	results := filepath.Join(dir, "R")

	large, err := notebook.ParseInstance("large")
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := notebook.Create(results, notebook.Study{
		Name:       "mine",
		Metrics:    map[string]notebook.Metric{"cpu": {Name: "execution time", Unit: "s"}},
		Treatments: []notebook.Treatment{{ID: "bm", Workload: "cpu", Platform: notebook.BM, Instance: large}},
	}, notebook.Host{ID: "h", CPUs: []notebook.CPU{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = errors.Join(
		w.Guest(notebook.Guest{ID: "g0", Treatment: "bm"}),
		w.Trial(notebook.Trial{Treatment: "bm", Guest: "g0", Value: 4.2}),
		w.Trial(notebook.Trial{Treatment: "bm", Guest: "g0", Index: 1, Failure: notebook.TextMessage("exit status 1")}),
		w.Close())
	if err != nil {
		fmt.Println(err)
		return
	}

	f, err := notebook.Read(results)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: CHR %.2f\n", f.Study.Name, f.Host.CHR(f.Study.Treatments[0]))
	err = f.Trials(func(t *notebook.Trial) error {
		if t.Failure != nil {
			fmt.Printf("trial %d failed: %s\n", t.Index, t.Failure)
			return nil
		}
		fmt.Printf("trial %d took %g s\n", t.Index, t.Value)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// mine: CHR 0.50
	// trial 0 took 4.2 s
	// trial 1 failed: exit status 1
}
