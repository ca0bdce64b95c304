package engine

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"tare/notebook"
)

// Moments are those of a guest's start, as they come, by the host's monotonic clock. A nil one notes nothing.
type Moments struct {
	mu    sync.Mutex
	began time.Time
	at    map[string]time.Duration
	news  chan struct{} // closed and replaced at each
}

// NewMoments begins now, with the request for the guest.
func NewMoments() *Moments {
	return &Moments{began: time.Now(), at: map[string]time.Duration{}, news: make(chan struct{})}
}

// Begin begins again: the time before it does not count as part of the start.
func (m *Moments) Begin() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began = time.Now()
}

// Mark notes that a moment, one of notebook's, is now. Where it was noted before, that stays.
func (m *Moments) Mark(name string) { m.At(name, time.Now()) }

// At notes when a moment was.
func (m *Moments) At(name string, t time.Time) {
	if m == nil || t.IsZero() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, noted := m.at[name]; noted {
		return
	}
	m.at[name] = t.Sub(m.began)
	close(m.news)
	m.news = make(chan struct{})
}

// Wait waits until a moment is noted; its error is ctx's.
func (m *Moments) Wait(ctx context.Context, name string) error {
	for {
		m.mu.Lock()
		_, noted := m.at[name]
		news := m.news
		m.mu.Unlock()
		if noted {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Noted are the moments so far, in the order in which they came.
func (m *Moments) Noted() (all []notebook.Moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, at := range m.at {
		all = append(all, notebook.Moment{Name: name, NS: at.Nanoseconds()})
	}
	slices.SortFunc(all, func(a, b notebook.Moment) int { return int(a.NS - b.NS) })
	return all
}

// Prompt is what every getty of Linux ends its question for a name with.
const Prompt = "login: "

// Watch passes on what r has, a guest's console, and notes the moment when the host has read the text there.
func (m *Moments) Watch(r io.Reader, text, moment string) io.Reader {
	if m == nil {
		return r
	}
	return &watched{Reader: r, text: []byte(text), seen: func() { m.Mark(moment) }}
}

type watched struct {
	io.Reader
	text []byte
	seen func()
	tail []byte // of what was read: too short to be the text
}

// Read implements io.Reader.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if n > 0 {
		all := append(w.tail, b[:n]...)
		if bytes.Contains(all, w.text) {
			w.seen()
		}
		w.tail = append(w.tail[:0], all[max(0, len(all)-len(w.text)+1):]...)
	}
	return n, err
}
