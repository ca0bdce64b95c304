package advise_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tare/desk/advise"
	"tare/desk/apply"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/price"
	show "tare/desk/show/capacity"
	"tare/desk/terminal"
	"tare/internal/golden"
	"tare/notebook"
	"tare/notebook/kinds/capacity"
	"tare/notebook/notebooktest"
)

// services is a study of the capacity of a service, with known capacities by treatment.
func services(t *testing.T, seed uint64, rounds int, of map[string]float64, order []string) *data.Summary {
	t.Helper()
	f := notebooktest.New(8)
	f.Study.Name, f.Study.Kind, f.Study.Config = "capacity", capacity.Name, &capacity.Config{Metric: "p99", Bound: 0.05, From: 100, To: 10000, Raise: 1, HoldS: 10}
	f.Study.Design = notebook.Design{Floor: rounds, Cap: rounds, Trials: 1, TimeoutS: 60}
	f.Noise, f.Rounds, f.Seed = 0.02, rounds, seed
	for _, name := range order {
		f.Add("shop "+name, 1/of[name])
	}
	f.Study.Metrics["shop"], f.Study.Also = notebooktest.Config[capacity.Config](f.Study, capacity.Name).Figure(), map[string][]notebook.Metric{"shop": {capacity.PerSecond}}
	f.Trial = func(x *notebook.Trial) {
		x.ElapsedS, x.HostS, x.Figures = 60, 60, map[string]float64{capacity.PerSecond.Name: 1 / x.Value}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{&show.Kind}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func prices(t *testing.T, lines ...string) *price.List {
	t.Helper()
	l, err := price.Read(strings.NewReader("of,unit,price,currency\n" + strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var (
	p99   = &data.Objective{Metric: "p99", Bound: 0.05}
	order = []string{"bm 1/1GB", "bm 2/4GB", "cn docker pinned 1/1GB", "cn docker pinned 2/4GB", "vm qemu kvm pinned 1/1GB", "vm qemu kvm pinned 2/4GB"}
	known = map[string]float64{
		"bm 1/1GB": 500, "bm 2/4GB": 1100, "cn docker pinned 1/1GB": 480, "cn docker pinned 2/4GB": 1040, "vm qemu kvm pinned 1/1GB": 420, "vm qemu kvm pinned 2/4GB": 900,
	}
)

func TestOffers(t *testing.T) {
	s := services(t, 7, 8, known, order)
	list := prices(t, "1/1GB,instance-hour,0.010,USD", "2/4GB,instance-hour,0.025,USD", "bm,licence-core-year,50,USD", "vn,licence-host-year,100,USD")
	advice := func(o advise.Options) (*advise.Advice, string) {
		t.Helper()
		a, err := advise.Of(s, o)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := terminal.Advice(&b, a, terminal.Screen{Width: 110}); err != nil {
			t.Fatal(err)
		}
		return a, b.String()
	}
	a, text := advice(advise.Options{Objective: p99, Demand: 2000, Prices: list})
	golden.Check(t, "offers.txt", []byte(text))
	var encoded, docker bytes.Buffer
	if err := export.Advice(&encoded, a); err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Why    string
		Offers struct {
			Objective, Currency string
			Demand              float64
			List                []struct {
				Name              string
				Instances         int
				Hour, Probability float64
			}
		}
	}
	if err := json.Unmarshal(encoded.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	of := got[0].Offers
	if first := of.List[0]; !strings.HasPrefix(got[0].Why, "The cheapest that keeps") || of.Objective != "p99<50ms" || of.Demand != 2000 || of.Currency != "USD" ||
		len(of.List) != 6 || !strings.HasPrefix(first.Name, "Docker") || first.Instances != 5 || first.Hour != 0.05 || first.Probability < 0.999 {
		t.Errorf("%+v", got)
	}
	if err := apply.Write(&docker, a, "docker", 0); err != nil || !strings.Contains(docker.String(), "--memory=1g") {
		t.Errorf("the cheapest is not what is applied: %v: %s", err, &docker)
	}

	_, text = advice(advise.Options{Objective: &data.Objective{Metric: "p99", Bound: 0.1}, Prices: list, Exclude: []string{"bm"}})
	for _, want := range []string{"The cheapest that keeps p99<100ms: Docker with --cpuset-cpus at 1/1GB, 0.00578 USD a million requests", "the capacity was sought for p99<50ms", " 95 %\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("without a demand: %s; want %q", text, want)
		}
	}
	_, text = advice(advise.Options{Objective: p99, Demand: 2000, Prices: prices(t, "2/4GB,instance-hour,0.025,USD")})
	if want := "VM with a CPU set at 1/1GB: the price list has none"; !strings.Contains(text, want) || !strings.Contains(text, "2 instances of bare metal at 2/4GB") {
		t.Errorf("a size without a price: %s", text)
	}
}

// What cannot be answered is refused in one line.
func TestOffersRefused(t *testing.T) {
	s := services(t, 7, 5, known, order)
	list := prices(t, "*,core-hour,1,USD")
	for want, o := range map[string]advise.Options{
		"--objective p99<20ms: the capacity was sought for p99<50ms": {Objective: &data.Objective{Metric: "p99", Bound: 0.02}, Prices: list},
		"--objective p50<50ms: the capacity was sought for p99<50ms": {Objective: &data.Objective{Metric: "p50", Bound: 0.05}, Prices: list},
		"--objective: needs --prices":                                {Objective: p99},
		"--prices and --demand: need an --objective":                 {Prices: list},
		"leave out --metric and --prefer":                            {Objective: p99, Prices: list, Prefer: advise.Cost},
	} {
		if _, err := advise.Of(s, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	timed, err := data.Read([]string{notebooktest.New(2).Add("bm large", 1).Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := advise.Of(timed, advise.Options{Objective: p99, Prices: list}); err == nil || !strings.Contains(err.Error(), "nothing here sought a capacity") {
		t.Errorf("a study of times: %v", err)
	}
	for text, ok := range map[string]bool{"p99<50ms": true, " p99 <= 1.5s": true, "p99=50ms": true, "p99<50": false, "p99>50ms": false, "50ms": false, "p99<-1s": false, "p99<0s": false} {
		if _, err := advise.ParseObjective(text); (err == nil) != ok {
			t.Errorf("objective %q: %v", text, err)
		}
	}
	for text, ok := range map[string]bool{"2000/s": true, "0.5": true, "0/s": false, "-1/s": false, "many": false, "NaN": false, "Inf": false, "5/min": false} {
		if _, err := advise.ParseDemand(text); (err == nil) != ok {
			t.Errorf("demand %q: %v", text, err)
		}
	}
}

// An objective that nothing keeps is said so, with the reason.
func TestNothingKeepsTheObjective(t *testing.T) {
	s := services(t, 7, 5, known, order)
	for _, r := range s.Rows {
		r.Failed, r.Lost, r.Rounds, r.Values = r.Trials, r.Rounds, 0, nil
		r.Doubts = []data.Doubt{data.TrialsFailed{Failed: r.Trials, Trials: r.Trials}}
	}
	a, err := advise.Of(s, advise.Options{Objective: p99, Demand: 2000, Prices: prices(t, "*,core-hour,1,USD")})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := terminal.Advice(&b, a, terminal.Screen{}); err != nil || !strings.Contains(b.String(), "No choice here is known to keep p99<50ms at 2000 requests a second") ||
		!strings.Contains(b.String(), "every trial failed") {
		t.Errorf("%v: %s", err, &b)
	}
}

// On simulated hosts the cheapest choice that keeps the objective is named, and keeps the objective as often as promised.
func TestTheCheapestIsNamed(t *testing.T) {
	const hosts = 100
	rng := rand.New(rand.NewPCG(39, 1))
	named, kept := 0, 0
	for seed := range uint64(hosts) {
		of := map[string]float64{}
		for i, name := range order {
			of[name] = known[name] * (0.7 + 0.6*rng.Float64())
			if i%2 == 1 {
				of[name] = 2 * of[order[i-1]] * (0.9 + 0.2*rng.Float64())
			}
		}
		lines := []string{
			fmt.Sprintf("1/1GB,instance-hour,%.4f,USD", 0.01*(1+rng.Float64())), fmt.Sprintf("2/4GB,instance-hour,%.4f,USD", 0.02*(1+rng.Float64())),
			fmt.Sprintf("vm,licence-core-year,%.0f,USD", 20*rng.Float64()),
		}
		demand := math.Round(2000 * math.Exp(2*rng.Float64()))
		list := prices(t, lines...)
		a, err := advise.Of(services(t, seed, 10, of, order), advise.Options{Objective: p99, Demand: demand, Prices: list})
		if err != nil {
			t.Fatal(err)
		}
		best, cheapest := "", math.Inf(1)
		for _, name := range order {
			tr := notebooktest.Treatment(name)
			hourly, err := list.Hourly(tr, 8/tr.Instance.Cores)
			if err != nil {
				t.Fatal(err)
			}
			if total := math.Ceil(demand/of[name]) * hourly; total < cheapest {
				best, cheapest = "shop "+name, total
			}
		}
		r := a.Rankings[0]
		first := r.Offers.List[0]
		choice := r.Choices[first.Choice].Treatment.ID
		if choice == best {
			named++
		}
		if first.Keeps < advise.Sure {
			t.Errorf("host %d: %+v", seed, first)
		}
		if float64(first.Instances)*of[strings.TrimPrefix(choice, "shop ")] >= demand {
			kept++
		}
	}
	t.Logf("the cheapest was named on %d of %d hosts, and what was named keeps the objective on %d", named, hosts, kept)
	if named < 90 || kept < 93 {
		t.Errorf("the cheapest was named on %d of %d hosts, and what was named keeps the objective on %d", named, hosts, kept)
	}
}
