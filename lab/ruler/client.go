//go:build linux

package ruler

import (
	"context"
	"errors"
	"io"
	"time"
)

// Stream is what a Client talks over: a net.Conn or an *os.File that is in the poller.
type Stream interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Client is the host's end of the stream to a guest's ruler. It is not for use by several goroutines at once,
// but Close may be called at any time.
type Client struct{}

var errNotWritten = errors.New("ruler: not written yet")

// Connect waits until ctx is done for the ruler at the other end of s to say hello. It owns s from then on, and
// closes it on error.
func Connect(ctx context.Context, s Stream) (*Client, error) { s.Close(); return nil, errNotWritten }

// Hello is what the ruler said of itself and its guest.
func (c *Client) Hello() Hello { return Hello{} }

// RoundTrip is the smallest round trip of a Ping so far.
func (c *Client) RoundTrip() time.Duration { return 0 }

// Ping measures the time from sending an empty order to its answer.
func (c *Client) Ping(ctx context.Context) (time.Duration, error) { return 0, errNotWritten }

// Cost has the ruler time n empty processes, and returns what it measured.
func (c *Client) Cost(ctx context.Context, n int) ([]time.Duration, error) {
	return nil, errNotWritten
}

// Run has the ruler run and measure o. The duration is the same interval as Result.Elapsed by the host's clock.
func (c *Client) Run(ctx context.Context, o Order) (Result, time.Duration, error) {
	return Result{}, 0, errNotWritten
}

// Close ends the stream; the ruler then kills all it started.
func (c *Client) Close() error { return nil }
