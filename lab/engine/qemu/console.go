//go:build linux

package qemu

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"unicode"
)

// consoleKept is how many bytes from the end of a guest's console are kept. A guest may write any amount.
const consoleKept = 64 << 10

// console keeps the last bytes of what is read from a stream.
type console struct {
	mu    sync.Mutex
	data  []byte
	news  chan struct{} // closed and replaced at every news
	ended bool
}

func newConsole() *console { return &console{news: make(chan struct{})} }

// drain reads until the stream ends.
func (c *console) drain(r io.Reader) {
	buf := make([]byte, 8<<10)
	for {
		n, err := r.Read(buf)
		c.mu.Lock()
		c.data = append(c.data, buf[:n]...)
		if extra := len(c.data) - consoleKept; extra > 0 {
			c.data = append(c.data[:0], c.data[extra:]...)
		}
		c.ended = err != nil
		close(c.news)
		c.news = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// find returns the text after prefix on the last whole line that has it, at most 300 bytes. Firmware may have begun the line, so
// prefix need not be at its start.
func (c *console) find(prefix string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	whole := c.data[:bytes.LastIndexByte(c.data, '\n')+1]
	at := bytes.LastIndex(whole, []byte(prefix))
	if at < 0 {
		return "", false
	}
	line, _, _ := bytes.Cut(whole[at+len(prefix):], []byte("\n"))
	return printable(line, 300), true
}

// wait waits for a line that find would find. It returns false when the stream or ctx ended without one.
func (c *console) wait(ctx context.Context, prefix string) (string, bool) {
	for {
		c.mu.Lock()
		news, ended := c.news, c.ended
		c.mu.Unlock()
		if line, ok := c.find(prefix); ok || ended {
			return line, ok
		}
		select {
		case <-news:
		case <-ctx.Done():
			return "", false
		}
	}
}

// tail returns the last n lines as one printable text.
func (c *console) tail(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tail(c.data, n)
}

// tail returns the last n lines of a text, each in the form of find.
func tail(text []byte, n int) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var out []string
	for _, l := range lines[max(0, len(lines)-n):] {
		if s := printable(l, 300); s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "\n")
}

// printable makes text from what a guest wrote: without characters that command a terminal, and with at most n bytes and a mark for
// more.
func printable(b []byte, n int) string {
	s := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(string(b), ""))
	s = strings.TrimSpace(s)
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
