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

// Moments records the moments of a guest's start as they come, by the host's monotonic clock. A nil *Moments records nothing.
type Moments struct {
	mu    sync.Mutex
	began time.Time
	at    map[string]time.Duration
	news  chan struct{} // closed and replaced at each moment
}

// NewMoments begins now, at the request for the guest.
func NewMoments() *Moments {
	return &Moments{began: time.Now(), at: map[string]time.Duration{}, news: make(chan struct{})}
}

// Begin begins again: the time so far is not a part of the start.
func (m *Moments) Begin() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began = time.Now()
}

// Mark records that a moment, one of notebook's, is now. A moment that is recorded already stays.
func (m *Moments) Mark(name string) { m.At(name, time.Now()) }

// At records when a moment was.
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

// Wait waits until a moment is recorded. Its error is ctx's.
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

// Noted returns the moments so far, in the order in which they came.
func (m *Moments) Noted() (all []notebook.Moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, at := range m.at {
		all = append(all, notebook.Moment{Name: name, NS: at.Nanoseconds()})
	}
	slices.SortFunc(all, func(a, b notebook.Moment) int { return int(a.NS - b.NS) })
	return all
}

// Prompt is the end of the login prompt of every getty on Linux.
const Prompt = "login: "

// Watch passes on what it reads from r, a guest's console, and records the moment when the text has appeared there.
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
	tail []byte // end of what was read, shorter than the text
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
