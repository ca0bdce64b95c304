package ruler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tare/lab/ruler/frames"
)

// lookNote is the content of a look frame: which part of its memory the guest must describe.
type lookNote struct {
	Frames []frames.Range `json:"frames,omitempty"` // describe these
	Files  bool           `json:"files,omitempty"`  // say which frames contain which files
}

// seenNote is the content of a seen frame: a part of the answer.
type seenNote struct {
	Codes []byte         `json:"codes,omitempty"` // packed by frames.Pack, for the next of the requested frames
	Kept  int64          `json:"kept,omitempty"`  // free frames that the CPUs keep in reserve, which no flag shows
	Files []frames.Named `json:"files,omitempty"`
	Out   string         `json:"out,omitempty"`   // what is omitted, and why
	Error string         `json:"error,omitempty"` // why the guest cannot tell
	Last  bool           `json:"last,omitempty"`
}

// Limits on the guest's time and size for an answer.
const (
	lookTime = time.Minute     // between two parts of an answer
	seekTime = 2 * time.Minute // for files: the guest then returns what it has found
	mostSeen = 1 << 14         // parts
)

func (l *lookNote) check() error {
	n := uint64(0)
	for _, r := range l.Frames {
		if r.N == 0 || r.N > frames.Most || r.First > 1<<40 {
			return fmt.Errorf("%d frames from %d on: must be in the range of frames", r.N, r.First)
		}
		n += r.N
	}
	if n > frames.Most || (n == 0) != l.Files {
		return fmt.Errorf("a look at %d frames, files %v: must be at files or at most %d frames", n, l.Files, frames.Most)
	}
	return nil
}

// look is a running look, on the host's side.
type look struct {
	seen  chan frame
	left  int           // parts that may still come
	given chan struct{} // closed: nobody takes parts any more
	alone bool          // no order is in progress, so the look reads by itself
}

// looking is shared by a Client's looks and the order in progress, whose goroutine reads their answers.
type looking struct {
	mu      sync.Mutex
	now     *look
	running bool          // an order is in progress: its goroutine reads
	lost    chan struct{} // closed when the client is unusable
	once    sync.Once
}

// during sets whether an order is in progress.
func (l *looking) during(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
}

// take passes on a part of an answer; false if no look is running.
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

// Frames asks the guest's kernel for the use of the frames in these ranges, in their order. It may be called during a Run, whose
// goroutine then reads the answer, and otherwise reads by itself; one look at a time. kept is how many of the frames that seem the
// kernel's are free, and kept in reserve by its CPUs.
func (c *Client) Frames(ctx context.Context, ranges []frames.Range) (codes []frames.Code, kept int64, err error) {
	most := 0
	for _, r := range ranges {
		most += int(min(r.N, frames.Most))
	}
	_, err = c.look(ctx, lookNote{Frames: ranges}, func(n *seenNote) (err error) {
		if codes, err = frames.Unpack(codes, n.Codes, most); err == nil && n.Files != nil {
			err = errors.New("files, which were not requested")
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

// Files asks the guest which frames its files have in the page cache, and what it omitted. Otherwise it is like Frames. The guest
// looks for all of its files, which takes memory there.
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

// look sends the order and passes each part of the answer to take. An error of take is the guest's fault.
func (c *Client) look(ctx context.Context, note lookNote, take func(*seenNote) error) (out string, err error) {
	if err := note.check(); err != nil {
		return "", err
	}
	l := &look{seen: make(chan frame), left: mostSeen, given: make(chan struct{})}
	c.looking.mu.Lock()
	if c.looking.now != nil {
		err = errors.New("another look is still running")
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
		if ended { // otherwise its answer may still come, and be taken for the next one's
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
			return "", c.fail(violation(fmt.Sprintf("at most %d bytes", maxText), "a text of %d bytes about its memory", max(len(n.Error), len(n.Out))))
		}
		if err := take(&n); err != nil {
			return "", c.fail(violation("the requested description of its memory", "%v", err))
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

// part waits for a part of an answer, at most for limit.
func (c *Client) part(ctx context.Context, l *look, limit time.Duration) (frame, error) {
	if l.alone {
		if l.left--; l.left < 0 {
			return frame{}, c.fail(violation(fmt.Sprintf("at most %d parts", mostSeen), "one more part of an answer about its memory"))
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
		return frame{}, fmt.Errorf("%w: nothing about its memory for %v", ErrSilent, limit)
	case <-ctx.Done():
		return frame{}, context.Cause(ctx)
	}
}
