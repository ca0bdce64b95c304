//go:build linux

package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxQMPLine bounds one line from QEMU; the longest answer has a few hundred bytes for each vCPU.
const maxQMPLine = 1 << 20

// qmp speaks QEMU's machine protocol (docs/interop/qmp-spec.rst) over conn. One command runs at a time.
type qmp struct {
	conn     net.Conn
	command  sync.Mutex      // held while a command runs
	answers  chan qmpMessage // answers to the running command, from the reader
	ended    chan struct{}   // closed when the reader has ended
	err      error           // why the reader has ended
	mu       sync.Mutex      // guards the fields below
	id       int             // of the last command
	gift     *os.File        // file to send with the next command
	shutdown string          // why the machine stopped, once QEMU has said so
}

type qmpMessage struct {
	QMP    json.RawMessage `json:"QMP"` // the greeting
	ID     *int            `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
	Data  struct {
		Reason string `json:"reason"` // of a SHUTDOWN event
	} `json:"data"`
}

// newQMP reads QEMU's greeting and makes the protocol ready for commands. It owns conn.
func newQMP(ctx context.Context, conn net.Conn) (*qmp, error) {
	q := &qmp{conn: conn, answers: make(chan qmpMessage), ended: make(chan struct{})}
	greeted := make(chan struct{})
	go q.read(greeted)
	select {
	case <-greeted:
	case <-q.ended:
		return nil, fmt.Errorf("QEMU's control socket: %w", q.err)
	case <-ctx.Done():
		q.close()
		return nil, fmt.Errorf("QEMU's control socket: no greeting: %w", ctx.Err())
	}
	if err := q.run(ctx, "qmp_capabilities", nil); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

// read passes on QEMU's messages until the connection ends.
func (q *qmp) read(greeted chan<- struct{}) {
	defer close(q.ended)
	defer q.conn.Close()
	lines := bufio.NewScanner(q.conn)
	lines.Buffer(make([]byte, 4096), maxQMPLine)
	for lines.Scan() {
		var m qmpMessage
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			q.err = fmt.Errorf("%.100q is not a message of its protocol: %w", lines.Bytes(), err)
			return
		}
		switch {
		case m.QMP != nil:
			if greeted != nil {
				close(greeted)
				greeted = nil
			}
		case m.Event != "":
			if m.Event == "SHUTDOWN" {
				q.mu.Lock()
				q.shutdown = m.Data.Reason
				q.mu.Unlock()
			}
		default:
			q.mu.Lock()
			due := m.ID != nil && *m.ID == q.id
			q.mu.Unlock()
			if !due {
				continue // an answer to a command that was given up
			}
			select {
			case q.answers <- m:
			case <-time.After(time.Second): // a bound on this wait, too
			}
		}
	}
	if q.err = lines.Err(); q.err == nil {
		q.err = io.EOF
	}
}

// give passes an open file to QEMU, which then knows it by this name.
func (q *qmp) give(ctx context.Context, name string, f *os.File) error {
	q.mu.Lock()
	q.gift = f
	q.mu.Unlock()
	return q.with(ctx, "getfd", map[string]string{"fdname": name}, nil)
}

// write sends a command, with the file that belongs to it.
func (q *qmp) write(line []byte) error {
	q.mu.Lock()
	f := q.gift
	q.gift = nil
	q.mu.Unlock()
	conn, local := q.conn.(*net.UnixConn)
	if f == nil || !local {
		_, err := q.conn.Write(line)
		return err
	}
	_, _, err := conn.WriteMsgUnix(line, unix.UnixRights(int(f.Fd())), nil)
	return err
}

// run sends a command without arguments and decodes the answer into result, unless result is nil.
func (q *qmp) run(ctx context.Context, name string, result any) error {
	return q.with(ctx, name, nil, result)
}

// with is run with arguments: a struct or a map; nil: none.
func (q *qmp) with(ctx context.Context, name string, arguments, result any) error {
	q.command.Lock()
	defer q.command.Unlock()
	q.mu.Lock()
	q.id++
	id := q.id
	q.mu.Unlock()
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        int    `json:"id"`
	}{name, arguments, id})
	if err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok {
		if err := q.conn.SetWriteDeadline(d); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("QEMU command %s: %w", name, err)
		}
	}
	if err := q.write(append(line, '\n')); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) { // the context's deadline
			err = context.DeadlineExceeded
		}
		return fmt.Errorf("QEMU command %s: %w", name, err)
	}
	for {
		select {
		case m := <-q.answers:
			if *m.ID != id {
				continue
			}
			if m.Error != nil {
				return fmt.Errorf("QEMU command %s: %s: %s", name, m.Error.Class, m.Error.Desc)
			}
			if result == nil {
				return nil
			}
			if err := json.Unmarshal(m.Return, result); err != nil {
				return fmt.Errorf("QEMU command %s returned %.100q: %w", name, m.Return, err)
			}
			return nil
		case <-q.ended:
			return fmt.Errorf("QEMU command %s: %w", name, q.err)
		case <-ctx.Done():
			return fmt.Errorf("QEMU command %s: %w", name, ctx.Err())
		}
	}
}

// stopped is QEMU's reason why the machine stopped; empty if it runs.
func (q *qmp) stopped() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shutdown
}

// close ends the connection and waits for the reader.
func (q *qmp) close() {
	q.conn.Close()
	<-q.ended
}
