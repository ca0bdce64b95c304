package ruler

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// The protocol. Each end first writes magic, then frames. The guest speaks first:
//
//	guest → host   magic, hello
//	host → guest   magic
//
//	ping           → pong{now} (the time by the guest's calendar clock)
//	run{order}     → ready (all is prepared, nothing started)
//	go             → ended{lead, late} (the process is reaped; sent before anything else is done)
//	               → done{result} (everything that it left is killed and reaped)
//	cancel           at any time; ends the order in progress, which answers as ever; without one it means nothing
//	look{what}     → seen{part} … (of the guest's memory; at any time, one at a time; the last part says that it is)
//
// Run takes two steps so that host and guest time the same interval: what the guest prepares (an emptied scratch
// folder, pipes, its own garbage collection) lies before ready, and what it tidies up lies after ended. An order
// that cannot be started is answered with done at once.
const (
	kindHello byte = 'H'
	kindPong  byte = 'P'
	kindReady byte = 'R'
	kindEnded byte = 'E'
	kindDone  byte = 'D'
	kindSeen  byte = 'S'

	kindPing   byte = 'p'
	kindRun    byte = 'r'
	kindGo     byte = 'g'
	kindCancel byte = 'x'
	kindLook   byte = 'l'
)

var kindNames = map[byte]string{
	kindHello: "hello", kindPong: "pong", kindReady: "ready", kindEnded: "ended", kindDone: "done", kindSeen: "seen",
	kindPing: "ping", kindRun: "run", kindGo: "go", kindCancel: "cancel", kindLook: "look",
}

func kindName(k byte) string {
	if s, ok := kindNames[k]; ok {
		return "a " + s + " frame"
	}
	return fmt.Sprintf("a frame of unknown type %#02x", k)
}

const (
	maxFrame   = 4 << 20   // bytes of one frame's payload
	maxGarbage = 1 << 20   // bytes before magic: a serial port may carry a firmware's or kernel's messages first
	headerSize = 4 + 1     // length of the payload, type
	readChunk  = 32 * 1024 // bytes asked for at a time
)

// magic marks where the protocol begins in the stream. Its first byte is in no UTF-8 text. A terminal that translates line ends, or
// cuts off the eighth bit, destroys it, so a stream that changes bytes is detected at once.
var magic = []byte("\xf5tare\r\n\x1a")

// frame is a message. An empty payload stands for a message without content.
type frame struct {
	kind    byte
	payload []byte
}

// writeFrame sends one frame with a single Write. v is nil for a message without content.
func writeFrame(w io.Writer, kind byte, v any) error {
	var payload []byte
	if v != nil {
		var err error
		if payload, err = json.Marshal(v); err != nil {
			return fmt.Errorf("%s: %w", kindName(kind), err)
		}
	}
	if len(payload) > maxFrame {
		return fmt.Errorf("%s of %d bytes is longer than the protocol allows, %d", kindName(kind), len(payload), maxFrame)
	}
	b := make([]byte, 0, headerSize+len(payload))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, kind)
	b = append(b, payload...)
	_, err := w.Write(b)
	return err
}

// decoder splits a stream into frames. A read error (such as a deadline) loses nothing: the next call continues where the stream
// stopped. It holds at most one frame and one chunk, and at most what really came.
type decoder struct {
	r     io.Reader
	buf   []byte
	first time.Time // when the first byte came
}

func (d *decoder) fill() error {
	if cap(d.buf)-len(d.buf) < readChunk {
		grown := make([]byte, len(d.buf), 2*len(d.buf)+readChunk)
		copy(grown, d.buf)
		d.buf = grown
	}
	n, err := d.r.Read(d.buf[len(d.buf) : len(d.buf)+readChunk])
	d.buf = d.buf[:len(d.buf)+n]
	if n > 0 && d.first.IsZero() {
		d.first = time.Now()
	}
	if n > 0 {
		return nil // an error that came with data comes again
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// sync skips garbage until after magic.
func (d *decoder) sync() error {
	passed := 0
	for {
		if i := bytes.Index(d.buf, magic); i >= 0 {
			d.buf = append([]byte(nil), d.buf[i+len(magic):]...)
			return nil
		}
		// Only the beginning of magic at the very end can still become magic.
		if cut := len(d.buf) - (len(magic) - 1); cut > 0 {
			passed += cut
			d.buf = append(d.buf[:0], d.buf[cut:]...)
		}
		if passed > maxGarbage {
			return violation("the bytes that begin a ruler's stream", "%d bytes of something else, the last of them %.32q", passed, d.buf)
		}
		if err := d.fill(); err != nil {
			return err
		}
	}
}

// next returns the next frame. The caller owns its payload.
func (d *decoder) next() (frame, error) {
	for {
		if len(d.buf) >= headerSize {
			n := binary.BigEndian.Uint32(d.buf)
			kind := d.buf[4]
			if _, known := kindNames[kind]; !known {
				return frame{}, unexpected(frame{kind: kind}, "a frame of a known type")
			}
			if n > maxFrame {
				return frame{}, violation(fmt.Sprintf("at most %d bytes", maxFrame), "%s that says it has %d bytes", kindName(kind), n)
			}
			if end := headerSize + int(n); len(d.buf) >= end {
				f := frame{kind, append([]byte(nil), d.buf[headerSize:end]...)}
				d.buf = append(d.buf[:0], d.buf[end:]...)
				return f, nil
			}
		}
		if err := d.fill(); err != nil {
			if err == io.EOF && len(d.buf) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return frame{}, err
		}
	}
}

// decode decodes a frame's content into v, strictly: valid UTF-8, no unknown field, nothing after it.
func (f frame) decode(v any) error {
	bad := func(why string) error {
		return violation("its content as JSON", "%s with %.200q (%s)", kindName(f.kind), f.payload, why)
	}
	if !utf8.Valid(f.payload) {
		return bad("not UTF-8")
	}
	j := json.NewDecoder(bytes.NewReader(f.payload))
	j.DisallowUnknownFields()
	if err := j.Decode(v); err != nil {
		return bad(err.Error())
	}
	if _, err := j.Token(); err != io.EOF {
		return bad("more after its end")
	}
	return nil
}

// pongNote is the content of a pong frame: the guest's calendar clock, in nanoseconds since 1970.
type pongNote struct {
	Now int64 `json:"now"`
}

// endedNote is the content of an ended frame: how long after go the clock was started, and how long before this frame it was
// stopped. The host subtracts both.
type endedNote struct {
	Lead time.Duration `json:"lead"`
	Late time.Duration `json:"late"`
}
