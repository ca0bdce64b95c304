package advise

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tare/notebook"
)

func sizeOf(name string, cores float64) notebook.Instance {
	return notebook.Instance{Name: name, Cores: cores, Memory: int64(cores) << 30}
}

// growing is a study of a container on 32 CPUs, measured from 1 to 16 cores, bare metal also at 24. Of bare metal's time
// the vanilla container takes 1.05 + 0.02·(1/CHR − 1) times as much.
func growing() *lab {
	l := newLab(32)
	l.rounds = 20
	for _, c := range []float64{1, 2, 4, 8, 16, 24} {
		i := sizeOf(map[float64]string{1: "1/1GB", 2: "2/2GB", 4: "4/4GB", 8: "8/8GB", 16: "16/16GB", 24: "24/24GB"}[c], c)
		l.add("bm", i, 100/c)
		if c < 24 {
			l.add("cn/docker/vanilla", i, 100/c*ratio(c)).add("vm/qemu/kvm/pinned", i, 100/c*2)
		}
	}
	return l
}

func ratio(cores float64) float64 { return 1.05 + 0.02*(32/cores-1) }

func TestPredicted(t *testing.T) {
	dir := growing().write(t)
	a := read(t, Options{}, dir)
	r := a.Rankings[0]
	found := false
	for _, c := range r.Choices {
		if c.Predicted != (c.Treatment.Instance.Cores == 24 && c.Treatment.Platform != "bm") {
			t.Errorf("%s: predicted %v", c.named(), c.Predicted)
		}
		if c.named() == "Docker with --cpus at 24/24GB" {
			found = true
			if want := 100.0 / 24 * ratio(24); !(c.Low < want && want < c.High && c.High/c.Low < 1.2) || c.Rank != 2 {
				t.Errorf("%+v, want %g", c, want)
			}
		}
	}
	if !found {
		t.Errorf("%q", names(r))
	}
	if out := text(t, a); !strings.Contains(out, " predicted ") || !strings.Contains(out, "were not measured; docs/model.md") {
		t.Error(out)
	}
	// What is predicted can be applied as well, and says that it was not measured.
	a = read(t, Options{Exclude: []string{"bm"}, Instance: "24/24GB"}, dir)
	if out := apply(t, a, "docker", 0); !strings.Contains(out, "# Predicted, not measured:") || !strings.Contains(out, "docker run --cpus=24 --memory=24g") {
		t.Error(out)
	}
	if out := apply(t, a, "libvirt", 2); !strings.Contains(out, "The CPU set 0-23 is an example") || !strings.Contains(out, `emulatorpin cpuset="24-31"`) {
		t.Error(out)
	}
	// Dearer than what was measured, it is behind.
	if r := read(t, Options{Prefer: Cost}, dir).Rankings[0]; r.Choices[0].Predicted {
		t.Errorf("%+v", r.Choices[0])
	}
}

// Of a size that nobody measured the overheads are known, and with them the order.
func TestPredictedRatios(t *testing.T) {
	a := read(t, Options{Instance: "12/12GB"}, growing().write(t))
	r := a.Rankings[0]
	if want := []string{"bare metal at 12/12GB", "Docker with --cpus at 12/12GB", "VM with a CPU set at 12/12GB"}; !r.ByRatio || !slices.Equal(names(r), want) {
		t.Fatalf("%v %q", r.ByRatio, names(r))
	}
	if c := r.Choices[1]; !c.Predicted || !(math.Abs(c.Value-ratio(12)) < 0.02) || c.Value != c.Ratio || c.Tied {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(Why(r), "Bare metal at 12/12GB: overhead ratio 1 by definition; ") || !strings.Contains(said(r.Doubts)[0], "bare metal was not measured at 12/12GB") {
		t.Errorf("%s %q", Why(r), said(r.Doubts))
	}
	if out := text(t, a); !strings.Contains(out, "1 by definition") || !strings.Contains(out, "where their corrected intervals overlap") {
		t.Error(out)
	}
	// More than the host has is nothing to predict.
	if r := read(t, Options{Instance: "64/64GB"}, growing().write(t)).Rankings[0]; len(r.Choices) != 0 {
		t.Errorf("%q", names(r))
	}
}
