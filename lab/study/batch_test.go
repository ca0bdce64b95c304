package study

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/ruler"
	"tare/notebook"
)

// turnsOf are the treatments of the measured trials of a round, in the order in which they were made.
func turnsOf(book *fakeBook, round int) (ids []string) {
	for _, tr := range book.trials {
		if tr.Round == round && !tr.Warmup {
			ids = append(ids, tr.Treatment)
		}
	}
	return ids
}

// The guests of a group live at the same time, and each pass gives each of them one trial, in random order.
func TestTrialsTakeTurns(t *testing.T) {
	book := &fakeBook{}
	l := &fakeLab{elapsed: steady}
	r := &Run{Plan: fakePlan(notebook.Design{Floor: 3, Cap: 3, Trials: 6, Warmups: 1}, bmT, aaT, cnT), Lab: l, Book: book}
	if _, err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.Most != 3 || l.Live != 0 {
		t.Errorf("%d guests at once, %d left; want 3 and 0", l.Most, l.Live)
	}
	orders := map[string]bool{}
	for round := range 3 {
		ids := turnsOf(book, round)
		if len(ids) != 18 {
			t.Fatalf("round %d has %d trials, want 18", round, len(ids))
		}
		for pass := range slices.Chunk(ids, 3) {
			orders[strings.Join(pass, " ")] = true
			if slices.Sort(pass); len(slices.Compact(slices.Clone(pass))) != 3 {
				t.Errorf("round %d: a pass gives trials to %v", round, pass)
			}
		}
	}
	if len(orders) < 4 { // of six, in eighteen passes: fewer have a probability of one in ten million
		t.Errorf("passes have the orders %v", orders)
	}
	for _, g := range book.guests {
		if g.Together != 3 {
			t.Errorf("the record of %s says %d guests, want 3", g.Treatment, g.Together)
		}
	}
}

// Guests follow each other if the study or the guests do not allow them to live at the same time. The record says how many lived together.
func TestGuestsThatFollowEachOther(t *testing.T) {
	large, offline, kvm := cnT, bmT, vmT
	large.HostCores, offline.OthersOffline, kvm.Accelerator = 1, true, notebook.KVM
	cold := func(of notebook.Treatment) notebook.Treatment {
		of.Factors = map[string]string{notebook.FactorCache.Name: notebook.Caches[0]}
		return of
	}
	of := func(vm notebook.Treatment, kernel string) notebook.Treatment {
		vm.Kernel = kernel
		vm.ID += " kernel " + kernel
		return vm
	}
	neighbour := func(of notebook.Treatment) notebook.Treatment {
		of.Factors = map[string]string{notebook.FactorNeighbours.Name: "cpu:1"}
		return of
	}
	for _, c := range []struct {
		name  string
		order string
		of    []notebook.Treatment
		most  int // guests at the same time
	}{
		{"containers", "", []notebook.Treatment{bmT, aaT, cnT}, 3},
		{"sequential", notebook.OrderSequential, []notebook.Treatment{bmT, aaT, cnT}, 1},
		{"a virtual machine", "", []notebook.Treatment{bmT, cnT, kvm}, 2},
		{"a virtual machine, asked for", notebook.OrderInterleaved, []notebook.Treatment{bmT, cnT, kvm}, 3},
		{"an emulated one, asked for", notebook.OrderInterleaved, []notebook.Treatment{bmT, cnT, vmT}, 2},
		{"emulated ones of two kernels", notebook.OrderInterleaved, []notebook.Treatment{of(vmT, "a"), of(vmT, "b")}, 2},
		{"emulated ones of two kernels, not asked for", "", []notebook.Treatment{of(vmT, "a"), of(vmT, "b")}, 1},
		{"emulated ones of two kernels and a container", notebook.OrderInterleaved, []notebook.Treatment{of(vmT, "a"), of(vmT, "b"), cnT}, 1},
		{"virtual machines of two kernels", notebook.OrderInterleaved, []notebook.Treatment{of(kvm, "a"), of(kvm, "b")}, 2},
		{"bare metal that takes CPUs from the host", "", []notebook.Treatment{offline, cnT}, 1},
		{"another size of the host", "", []notebook.Treatment{large, bmT}, 1},
		{"a cold cache", "", []notebook.Treatment{cold(bmT), cold(cnT)}, 1},
		{"neighbours", "", []notebook.Treatment{neighbour(bmT), neighbour(cnT)}, 1},
	} {
		d := notebook.Design{Floor: 1, Cap: 1, Trials: 2, Order: c.order}
		p := fakePlan(d, c.of...)
		most := 0
		for _, b := range p.batches(p.Study.Treatments, baselinesOf(&p.Study)) {
			most = max(most, len(b.all()))
		}
		if most != c.most {
			t.Errorf("%s: %d guests at the same time, want %d", c.name, most, c.most)
		}
	}
}

// Services keep their memory during the trials of others. If the host has no room for all services, they follow each other.
func TestServicesThatDoNotFit(t *testing.T) {
	for memory, want := range map[int64]int{4 << 30: 2, 2<<30 + spareMemory: 2, 2 << 30: 1} {
		p := servicePlan("")
		p.room = memory
		p.interleaved()
		most := 0
		for _, b := range p.batches(p.Study.Treatments, baselinesOf(&p.Study)) {
			most = max(most, len(b.all()))
		}
		if most != want {
			t.Errorf("%d MB: %d services at the same time, want %d", memory>>20, most, want)
		}
	}
}

// Two services on the host's own network need the same port, so they follow each other. The containers stay, and do half of their trials
// next to each of the two.
func TestServicesOnOnePort(t *testing.T) {
	host, again := bmT, aaT // without a network in their treatments
	p := fakePlan(notebook.Design{Floor: 4, Cap: 4, Trials: 6}, host, again, cnT)
	for label := range p.ready {
		p.ready[label] = servicePlan("").ready["w"]
	}
	l := &serviceLab{fakeLab: fakeLab{elapsed: steady}, answer: `{"mean":0.25,"p99":0.5,"errors":0}`}
	book := &fakeBook{}
	if _, err := (&Run{Plan: p, Lab: l, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.most != 2 || l.places != 0 {
		t.Errorf("%d services at once, %d left; want 2 and 0", l.most, l.places)
	}
	first := map[string]int{}
	for round := range 4 {
		ids := turnsOf(book, round)
		if len(ids) != 18 {
			t.Fatalf("round %d has %d trials, want 18", round, len(ids))
		}
		for i, half := range [][]string{ids[:9], ids[9:]} {
			of := map[string]int{}
			for _, id := range half {
				of[id]++
			}
			if of[p.Study.Treatments[2].ID] != 3 || len(of) != 2 {
				t.Errorf("round %d, shift %d: trials of %v", round, i, of)
			}
		}
		first[fmt.Sprint(slices.Contains(ids[:9], p.Study.Treatments[0].ID))]++
	}
	if len(first) != 2 {
		t.Errorf("the same bare metal came first in every round: %v", first)
	}
}

// A guest that dies fails only its own trials.
func TestGuestThatDiesAmongOthers(t *testing.T) {
	p := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 3}, bmT, aaT, cnT)
	cn := p.Study.Treatments[2].ID
	runs := 0
	l := &fakeLab{elapsed: steady, result: func(t notebook.Treatment, _ ruler.Order, _ *ruler.Result) error {
		if t.ID == cn {
			if runs++; runs == 2 {
				return ruler.ErrGone
			}
		}
		return nil
	}}
	book := &fakeBook{}
	if _, err := (&Run{Plan: p, Lab: l, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	good := map[string]int{}
	for _, tr := range book.trials {
		if tr.Failure == nil {
			good[tr.Treatment]++
		}
	}
	if good[cn] != 1 || good[p.Study.Treatments[0].ID] != 3 || good[p.Study.Treatments[1].ID] != 3 || len(book.trials) != 9 || l.Live != 0 {
		t.Errorf("good trials: %v of %d, %d guests left", good, len(book.trials), l.Live)
	}
}

// A deadline ends a batch between two passes. Each guest then has the same number of trials, and a later run does the others.
func TestDeadlineEndsBetweenPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 10}, bmT, aaT, cnT)
		lab := func() *fakeLab { return levels(3, time.Second, time.Second, 0, 0, same) }
		book := &fakeBook{}
		r := &Run{Plan: p, Lab: lab(), Book: book, Deadline: time.Now().Add(14 * time.Second)} // three seconds to make guests, and three for each pass
		if reason, err := r.Do(t.Context()); err != nil || !reason.Is("time-budget") {
			t.Fatalf("%v, %v", reason, err)
		}
		n := map[string]int{}
		for _, tr := range book.trials {
			n[tr.Treatment]++
		}
		for _, of := range p.Study.Treatments {
			if n[of.ID] != 3 {
				t.Errorf("trials at the deadline: %v, want 3 of each", n)
			}
		}
		again := &Run{Plan: p, Lab: lab(), Book: book}
		for _, g := range slices.Clone(book.guests) {
			again.Made(g)
		}
		for _, tr := range slices.Clone(book.trials) {
			again.Take(tr)
		}
		if reason, err := again.Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") || book.measured() != 30 {
			t.Errorf("continued: %v, %v, %d trials, want 30", reason, err, book.measured())
		}
	})
}
