//go:build linux

package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/registry"
	"tare/notebook"
)

// pulled checks a guest whose start pulls its image from a registry, and an engine that has forgotten what it pulled.
func (r *suite) pulled(t *testing.T) {
	if !r.s.Pulls {
		s := r.spec(t, r.e.Provisionings[0], 1)
		s.Pull = "127.0.0.1:1/tare/root:none"
		r.cannot(t, "an image that its start pulls", s)
		return
	}
	err := registry.Find()
	require.That(t, err == nil, "docker-registry (apt-get install docker-registry)")
	for _, compression := range notebook.Compressions {
		t.Run(compression, func(t *testing.T) { r.pulls(t, notebook.Pull{Compression: compression, Layers: 3}) })
	}
}

// pulls checks guests whose starts pull their image in this form, from a registry of their own.
func (r *suite) pulls(t *testing.T, of notebook.Pull) {
	if c, chooses := r.driver.(engine.Chooser); chooses {
		err := c.Supports(t.Context(), notebook.Treatment{Factors: map[string]string{notebook.FactorPull.Name: of.Text()}})
		if unsupported(err) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	from, err := registry.Start(ctx, r.env.Journal, r.env.State)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if from != nil {
			from.Close(context.Background())
		}
	}()
	s := r.spec(t, r.e.Provisionings[0], 1)
	if s.Pull, _, err = from.Push(ctx, &r.image.Tree, of); err != nil {
		t.Fatal(err)
	}
	if err := r.driver.(engine.Puller).Forget(ctx, s.Pull); err != nil {
		t.Fatalf("forgetting what was not pulled: %v", err)
	}
	before := r.snapshot(t)
	for range 2 {
		s.ID += "p"
		s.Moments = engine.NewMoments()
		g := r.provision(t, s)
		at := map[string]time.Duration{}
		for _, m := range s.Moments.Noted() {
			at[m.Name] = time.Duration(m.NS)
		}
		if image, created := at[notebook.MomentImage], at[notebook.MomentCreated]; image <= 0 || image >= created {
			t.Errorf("the image was there after %v, and the guest after %v; want the image first", image, created)
		}
		r.files(t, g)
		r.end(t, before, g, s)
	}
	err, from = from.Close(ctx), nil
	if err != nil {
		t.Fatal(err)
	}
	s.ID, s.Moments = s.ID+"q", nil
	if err := r.attempt(t, s, 30*time.Second); err == nil || !strings.Contains(err.Error(), "did not pull") {
		t.Errorf("a start that pulls an image of a registry that has ended, after a guest with this image: %v", err)
	}
}
