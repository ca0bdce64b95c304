//go:build linux

package require

import (
	"slices"
	"testing"
)

func TestRecorder(t *testing.T) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Errorf("%d is not %d", 1, 2)
		r.Fatal("the end")
		r.Error("after the end")
	}()
	<-done
	if want := []string{"1 is not 2", "the end"}; !r.Failed() || !slices.Equal(r.said, want) || t.Failed() {
		t.Errorf("failed %v, said %q; want %q, and that the test itself goes on", r.Failed(), r.said, want)
	}
	if share := Stolen(t, func() {}); share < 0 || share > 1 {
		t.Errorf("a share of %v was stolen", share)
	}
	n := 0
	Undisturbed(t, func(testing.TB) { n++ })
	if n != 1 {
		t.Errorf("a check that does not fail was made %d times", n)
	}
}
