//go:build linux

package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"tare/lab/replay"
	"tare/notebook"
)

// answering are the programs that see when requests come to the target's services and when it answers them.
var answering = []string{"arrives", "takes", "sends"}

// Answering is the key in Kit.Missing for them.
const Answering = "answering"

// The tracer of requests notes when each thread ran, what woke it, and when requests came and were answered. Only targets with Each have a
// timeline, from which Tare finds their requests.
var _ = add(tracer{
	name:     notebook.TracerRequests,
	on:       onThreads,
	hostOnly: true,
	each:     true,
	programs: []string{"switched"},
})

// settle counts a missing program that watches as missing from the tracer of requests. That tracer does not distinguish page faults of files.
func (k *Kit) settle() {
	for _, of := range []string{Watching, Answering} {
		if why := k.missing[of]; why != "" && k.missing[notebook.TracerRequests] == "" {
			k.missing[notebook.TracerRequests] = why
		}
		delete(k.missing, of)
	}
}

// timelineBytes is how much the kernel keeps of the timeline between two readings. A note takes 32 bytes with its header.
const timelineBytes = 32 << 20

// noteSize is the size of the struct note in bpf/timeline.c in bytes.
const noteSize = 24

// Kinds of notes, and what a thread that leaves a core does next (bpf/timeline.c).
const (
	noteEnters = iota
	noteLeaves
	noteWakes
	noteArrives
	noteTakes
	noteSends
	noteOthers
)

const (
	thenReady = iota
	thenWaits
	thenThrottled
	thenEnded
)

var (
	kindsOfNotes = [...]replay.Kind{noteEnters: replay.Enters, noteLeaves: replay.Leaves, noteWakes: replay.Wakes, noteArrives: replay.Arrives,
		noteTakes: replay.Takes, noteSends: replay.Sends, noteOthers: replay.Others}
	nextStates   = [...]replay.State{thenReady: replay.Ready, thenWaits: replay.Waits, thenThrottled: replay.Throttled, thenEnded: replay.Ended}
	statesOfSeat = [...]replay.State{stateUnknown: replay.Unknown, stateNew: replay.New, stateRuns: replay.Unknown, stateWaits: replay.Waits,
		stateReady: replay.Ready, stateThrottled: replay.Throttled}
)

// readNote decodes a note; ok says whether it is one.
func readNote(b []byte) (e replay.Event, ok bool) {
	if len(b) < noteSize {
		return e, false
	}
	n := binary.NativeEndian
	what, why := b[20], b[21]
	if int(what) >= len(kindsOfNotes) {
		return e, false
	}
	e = replay.Event{At: time.Duration(n.Uint64(b)), Value: n.Uint64(b[8:]), Thread: int32(n.Uint32(b[16:])), CPU: n.Uint16(b[22:]), Kind: kindsOfNotes[what]}
	switch what {
	case noteLeaves:
		if int(why) >= len(nextStates) {
			return e, false
		}
		e.State = nextStates[why]
	case noteEnters:
		if int(why>>4) >= len(statesOfSeat) {
			return e, false
		}
		e.State = statesOfSeat[why>>4]
		if r := int(why & 15); r < reasonCount {
			e.Wait = waits[r]
		}
	}
	return e, true
}

// Serves says which TCP ports the target listens on, in the network namespace with this inode, so that the timeline has its requests.
func (t *Trace) Serves(namespace uint64, ports []uint16) error {
	if !t.Watches() || !t.kit.serve || len(ports) == 0 {
		return nil
	}
	if namespace > math.MaxUint32 {
		return fmt.Errorf("network namespace %d: must be at most %d", namespace, uint64(math.MaxUint32))
	}
	var bits [8192]uint8
	for _, p := range ports {
		bits[p>>3] |= 1 << (p & 7)
	}
	return errors.Join(t.kit.put("ports", 0, bits), t.kit.put("look", netAt, uint32(namespace)))
}

// Timeline appends to events what happened since the last call, at most until there are most of them; the rest stays unread. The kernel
// keeps only so much: unseen says that it had no room for further ones, of which none is kept.
func (t *Trace) Timeline(events []replay.Event, most int) (_ []replay.Event, unseen bool, err error) {
	if t.notes == nil {
		return events, false, nil
	}
	var r ringbuf.Record
	for len(events) < most {
		err := t.notes.ReadInto(&r)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return events, false, fmt.Errorf("reading the timeline: %w", err)
		}
		e, ok := readNote(r.RawSample)
		if !ok {
			return events, false, fmt.Errorf("reading the timeline: %d bytes are not a valid note", len(r.RawSample))
		}
		events = append(events, e)
	}
	var lost uint64
	err = t.kit.get("unnoted", &lost)
	return events, lost > 0, err
}

// EndTimeline ends the timeline: nothing more is noted.
func (t *Trace) EndTimeline() error {
	if t.notes == nil {
		return nil
	}
	return t.kit.put("unwanted", 0, uint32(1))
}

// Clock is the time now by the clock of the timeline's events.
func Clock() time.Duration { return time.Duration(clock()) }

// openTimeline makes the timeline ready to be read.
func (t *Trace) openTimeline() (err error) {
	if err := errors.Join(t.kit.put("unnoted", 0, uint64(0)), t.kit.put("unwanted", 0, uint32(0)), t.kit.put("ports", 0, [8192]uint8{})); err != nil {
		return err
	}
	if t.notes, err = ringbuf.NewReader(t.kit.coll.Maps["timeline"]); err != nil {
		return fmt.Errorf("the timeline: %w", err)
	}
	t.notes.SetDeadline(time.Unix(1, 0)) // never wait
	t.links = append(t.links, t.notes)
	return nil
}
