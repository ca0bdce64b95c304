package notebooktest

import (
	"reflect"
	"testing"

	"tare/notebook"
)

func TestTreatment(t *testing.T) {
	got := Treatment("cpu n=4 vm qemu kvm pinned bridge host_cores=8 2/4GB")
	want := notebook.Treatment{
		ID: "cpu n=4 vm qemu kvm pinned bridge host_cores=8 2/4GB", Workload: "cpu", Params: map[string]string{"n": "4"}, Platform: "vm", Engine: "qemu",
		Accelerator: "kvm", Provisioning: "pinned", Network: "bridge", HostCores: 8, Instance: notebook.Instance{Name: "2/4GB", Cores: 2, Memory: 4 << 30},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, words := range []string{"", "bm", "large", "cn crun runc large", "bm host_cores=x large"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken", words)
				}
			}()
			Treatment(words)
		}()
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f := New(2).Add("bm large", 4).Add("cn crun pinned large", 5)
	f.Study.Design.Warmups, f.Study.Explain = 1, notebook.DefaultTracers
	f.Trial = func(x *notebook.Trial) {
		if x.Treatment == "bm large" && x.Round == 1 && !x.Warmup {
			x.Failure = notebook.TextMessage("killed")
		}
	}
	dir := f.Write(t)
	Append(t, dir, notebook.Trial{Treatment: "bm large", Round: 9})
	r, err := notebook.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var trials, warmups, traced, failed, last int
	if err := r.Trials(func(x *notebook.Trial) error {
		trials++
		last = x.Round
		switch {
		case x.Warmup:
			warmups++
		case x.Traced:
			traced++
		}
		if x.Failure != nil {
			failed++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(r.Guests) != 10 || len(r.Sessions) != 2 || trials != 71 || warmups != 10 || traced != 30 || failed != 6 || last != 9 {
		t.Errorf("%d guests, %d sessions, %d trials (%d warm-ups, %d traced, %d failed); the last of round %d", len(r.Guests), len(r.Sessions), trials, warmups, traced, failed, last)
	}
}
