package ruler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tare/lab/ruler/frames"
)

// lookNote is the content of a look frame: what the guest is to say of its memory.
type lookNote struct {
	Frames []frames.Range `json:"frames,omitempty"` // what these are
	Files  bool           `json:"files,omitempty"`  // which frames have which file
}

// seenNote is the content of a seen frame: a part of the answer.
type seenNote struct {
	Codes []byte         `json:"codes,omitempty"` // as frames.Pack packs them, of the next of the frames that were asked for
	Kept  int64          `json:"kept,omitempty"`  // frames that are free and that the CPUs keep at hand, which no flag tells
	Files []frames.Named `json:"files,omitempty"`
	Out   string         `json:"out,omitempty"`   // what is left out, and why
	Error string         `json:"error,omitempty"` // the guest cannot tell: why
	Last  bool           `json:"last,omitempty"`
}

// What the guest may take, and send, for an answer.
const (
	lookTime = time.Minute     // between two parts of it
	seekTime = 2 * time.Minute // for files: then it says what it has found
	mostSeen = 1 << 14         // parts
)

func (l *lookNote) check() error {
	n := uint64(0)
	for _, r := range l.Frames {
		if r.N == 0 || r.N > frames.Most || r.First > 1<<40 {
			return fmt.Errorf("%d frames from %d on cannot be looked at", r.N, r.First)
		}
		n += r.N
	}
	if n > frames.Most || (n == 0) != l.Files {
		return fmt.Errorf("a look at %d frames, files %v: frames, at most %d, or files are looked at", n, l.Files, frames.Most)
	}
	return nil
}

// look is one under way, on the host's side.
type look struct {
	seen  chan frame
	left  int           // parts that may still come
	given chan struct{} // closed: nobody takes them any more
	alone bool          // no order is in progress: the look reads by itself
}

// looking is what a Client's looks share with the order that is in progress, by which their answers come.
type looking struct {
	mu      sync.Mutex
	now     *look
	running bool          // an order is in progress: its goroutine reads
	lost    chan struct{} // closed when the client is of no more use
	once    sync.Once
}

// during says whether an order is in progress.
func (l *looking) during(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
}

// take hands on a part of an answer; false: none was expected.
func (l *looking) take(f frame) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil || l.now.left == 0 {
		return false
	}
	if l.now.alone {
		select {
		case <-l.now.given:
		default:
			return false
		}
	}
	l.now.left--
	select {
	case l.now.seen <- f:
	case <-l.now.given:
	}
	return true
}

// Frames asks the guest's kernel what the frames of these ranges are, in their order. It may be called beside a Run, whose order is in progress and which
// reads the answer then, and by itself; one look at a time. kept is how many of the frames that seem the kernel's are free, and kept at hand by its CPUs.
func (c *Client) Frames(ctx context.Context, ranges []frames.Range) (codes []frames.Code, kept int64, err error) {
	most := 0
	for _, r := range ranges {
		most += int(min(r.N, frames.Most))
	}
	_, err = c.look(ctx, lookNote{Frames: ranges}, func(n *seenNote) (err error) {
		if codes, err = frames.Unpack(codes, n.Codes, most); err == nil && n.Files != nil {
			err = errors.New("files, which nobody asked for")
		}
		if kept += n.Kept; err == nil && (n.Kept < 0 || kept > int64(most)) {
			err = fmt.Errorf("%d frames kept at hand, of %d", n.Kept, most)
		}
		if err == nil && n.Last && n.Error == "" && len(codes) < most {
			err = fmt.Errorf("%d frames of %d", len(codes), most)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return codes, kept, nil
}

// Files asks the guest which frames its files have in the page cache, and what it left out. Otherwise it is as Frames. The guest looks for all of its files,
// which takes memory there.
func (c *Client) Files(ctx context.Context) (files []frames.Named, out string, err error) {
	total := uint64(0)
	out, err = c.look(ctx, lookNote{Files: true}, func(n *seenNote) error {
		for i := range n.Files {
			f, err := n.Files[i].Check()
			if total += f; err == nil && total > frames.Most {
				err = fmt.Errorf("files of more than %d frames", frames.Most)
			}
			if err != nil {
				return err
			}
		}
		if files = append(files, n.Files...); len(files) > frames.MostFiles || len(n.Codes) > 0 {
			return fmt.Errorf("%d files and %d bytes of codes", len(files), len(n.Codes))
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return files, out, nil
}

// look sends the order and gives each part of its answer to take, whose error is the guest's fault.
func (c *Client) look(ctx context.Context, note lookNote, take func(*seenNote) error) (out string, err error) {
	if err := note.check(); err != nil {
		return "", err
	}
	l := &look{seen: make(chan frame), left: mostSeen, given: make(chan struct{})}
	c.looking.mu.Lock()
	if c.looking.now != nil {
		err = errors.New("another look has not ended")
	} else {
		l.alone, c.looking.now = !c.looking.running, l
	}
	c.looking.mu.Unlock()
	if err != nil {
		return "", fmt.Errorf("looking at the guest's memory: %w", err)
	}
	ended := false
	defer func() {
		close(l.given)
		if ended { // else its answer is still on the way, and a next one could not be told from it
			c.looking.mu.Lock()
			c.looking.now = nil
			c.looking.mu.Unlock()
		}
	}()
	if err := c.send(kindLook, note); err != nil {
		return "", err
	}
	limit := lookTime
	if note.Files {
		limit += seekTime
	}
	for {
		f, err := c.part(ctx, l, limit)
		if err != nil {
			return "", err
		}
		var n seenNote
		if err := f.decode(&n); err != nil {
			return "", c.fail(err)
		}
		if len(n.Error) > maxText || len(n.Out) > maxText {
			return "", c.fail(violation(fmt.Sprintf("at most %d bytes", maxText), "a text of %d bytes on its memory", max(len(n.Error), len(n.Out))))
		}
		if err := take(&n); err != nil {
			return "", c.fail(violation("what was asked for of its memory", "%v", err))
		}
		if n.Error != "" && !n.Last {
			return "", c.fail(violation("the last part of an answer", "an error with more to come"))
		}
		if n.Out != "" {
			out = n.Out
		}
		if n.Last {
			ended = true
			if n.Error != "" {
				return "", &CannotTell{n.Error}
			}
			return out, nil
		}
	}
}

// part waits for a part of an answer, for so long.
func (c *Client) part(ctx context.Context, l *look, limit time.Duration) (frame, error) {
	if l.alone {
		if l.left--; l.left < 0 {
			return frame{}, c.fail(violation(fmt.Sprintf("at most %d parts", mostSeen), "another of an answer on its memory"))
		}
		return c.expect(ctx, time.Now().Add(limit), kindSeen)
	}
	wait := time.NewTimer(limit)
	defer wait.Stop()
	select {
	case f := <-l.seen:
		return f, nil
	case <-c.looking.lost:
		return frame{}, ErrGone
	case <-wait.C:
		return frame{}, fmt.Errorf("%w: nothing of its memory for %v", ErrSilent, limit)
	case <-ctx.Done():
		return frame{}, context.Cause(ctx)
	}
}
