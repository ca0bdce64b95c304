//go:build linux

// Package remote is another machine that loads run on. The system's own ssh client reaches it, through one connection with several
// sessions. The first one keeps a folder there (keeper.sh). Further ones send the loads' files into it, once. Each load's place is
// another session, with the ruler at its end (place.sh). What runs there ends with the connection, and the folder is removed then,
// however it ends.
package remote

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"strings"
	"time"

	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/network"
	"tare/lab/proc"
	"tare/lab/ruler"
)

//go:embed keeper.sh
var keeper string

//go:embed place.sh
var place string

const (
	connectTime = 30 * time.Second // until the machine's keeper has named its folder
	sendTime    = 15 * time.Minute // for a root: a gigabyte at 10 Mbit/s
	closeTime   = 20 * time.Second // for the keeper to remove its folder
)

// Machine is a machine that loads run on. Only one goroutine at a time may use it.
type Machine struct {
	url     string
	control string // socket of ssh's connection
	ruler   string
	say     image.Progress

	line *connection // the last one
	here netip.Addr
}

// connection is one ssh connection, and what exists on the machine during it.
type connection struct {
	master *engine.Process
	alive  *os.File // the keeper's standard input
	folder string
	sent   map[string]bool
}

// Open connects to the machine of url in ssh's form: ssh://[USER@]HOST[:PORT]. control is the path for ssh's socket, below a folder
// that only root can enter, and program the ruler's file.
func Open(ctx context.Context, url, control, program string, say image.Progress) (*Machine, error) {
	m := &Machine{url: url, control: control, ruler: program, say: say}
	return m, m.connect(ctx)
}

// URL is the machine's URL.
func (m *Machine) URL() string { return m.url }

// Here is the address of this host that the machine sees, and where its loads reach guests.
func (m *Machine) Here() netip.Addr { return m.here }

// ssh is a call of the system's client that asks no questions, and notices within half a minute if the machine is gone.
func (m *Machine) ssh(args ...string) []string {
	return append([]string{"-aTx", "-S", m.control,
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=4",
		"-o", "ControlPersist=no", "-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "-o", "EscapeChar=none"}, args...)
}

// session is a command on the machine, through the existing connection and never a new one.
func (m *Machine) session(ctx context.Context, words ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ssh", m.ssh("-o", "ControlMaster=no", "-o", "ProxyCommand=false", "--", m.url, Command(words...))...)
}

// Command is a command line that the machine's login shell splits into these words.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return "exec " + strings.Join(quoted, " ")
}

// sshFailed is the status of ssh when it has failed itself.
const sshFailed = "exit status 255"

// arch is this machine's architecture in uname's words.
var arch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]

func (m *Machine) connect(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("load from %s: %w", m.url, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if err := os.Remove(m.control); err != nil && !errors.Is(err, os.ErrNotExist) { // the socket of a killed tare
		return err
	}
	in, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	said, out, err := os.Pipe()
	if err != nil {
		alive.Close()
		return err
	}
	defer said.Close()
	defer out.Close()
	cmd := exec.Command("ssh", m.ssh("-M", "--", m.url, Command("sh", "-c", keeper, "keeper", arch))...)
	cmd.Stdin, cmd.Stdout = in, out
	line := &connection{alive: alive, sent: map[string]bool{}}
	if line.master, err = engine.StartTied(cmd); err != nil {
		alive.Close()
		return fmt.Errorf("%w: apt-get install openssh-client", err)
	}
	in.Close()
	out.Close()
	stop := context.AfterFunc(ctx, func() { said.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	g, err := hear(said)
	if err == nil {
		err = m.isHere(g.here)
	} else if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v", connectTime)
	} else if errors.Is(err, io.EOF) {
		err = line.why()
	}
	if err != nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		return errors.Join(err, line.end(bounded))
	}
	line.folder, m.line, m.here = g.folder, line, g.here
	return nil
}

// why says why the connection has ended.
func (c *connection) why() error {
	said := c.master.Ended()
	if strings.Contains(said, sshFailed) {
		said += "; it must let this user log in without a question (test it with ssh -o BatchMode=yes)"
	}
	return errors.New("ssh: " + said)
}

// isHere checks the address of this host that the machine sees.
func (m *Machine) isHere(a netip.Addr) error {
	if !a.Is4() {
		return fmt.Errorf("it is reached over IPv6 (from %s), but guests have IPv4 addresses; give its IPv4 address", a)
	}
	if m.here.IsValid() && a != m.here {
		return fmt.Errorf("it now sees this host as %s, but saw it as %s before", a, m.here)
	}
	link, err := network.LinkOf(a)
	if err != nil || link != "" {
		return err
	}
	return fmt.Errorf("it sees this host as %s, which is not one of this host's addresses; behind address translation it cannot reach a guest here", a)
}

// greeting is a keeper's first line.
type greeting struct {
	folder string
	here   netip.Addr
}

const maxGreeting = 64 << 10 // bytes, including what a login prints before

var folderOK = regexp.MustCompile(`^/var/lib/tare-load/[0-9]{1,10}$`)

// hear reads a keeper's greeting: tare-load FOLDER, and $SSH_CONNECTION, which begins with this host's address.
func hear(r io.Reader) (g greeting, err error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxGreeting))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] != "tare-load" {
			continue
		}
		if len(words) == 6 && folderOK.MatchString(words[1]) {
			g.folder = words[1]
			g.here, err = netip.ParseAddr(words[2])
			if err == nil {
				g.here = g.here.Unmap()
				return g, nil
			}
		}
		return g, fmt.Errorf("it answered %.200q; must be tare-load, a folder and the two ends of the connection", lines.Text())
	}
	return g, cmp.Or(lines.Err(), io.EOF)
}

// connected connects again if the connection was lost.
func (m *Machine) connected(ctx context.Context) error {
	select {
	case <-m.line.master.Done():
		m.line.alive.Close()
		return m.connect(ctx)
	default:
		return nil
	}
}

// send passes what f writes to a command there.
func (m *Machine) send(ctx context.Context, what string, f func(context.Context, io.Writer) error, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	var said proc.Tail
	cmd := m.session(ctx, words...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	err = f(ctx, in)
	in.Close()
	if werr := cmd.Wait(); werr != nil {
		err = fmt.Errorf("%w: %s", werr, strings.TrimSpace(said.String())) // why the data did not arrive
	}
	if err != nil {
		return fmt.Errorf("sending %s to %s: %w", what, m.url, err)
	}
	return nil
}

// bring sends the ruler and a tree, once, and returns the tree's name there.
func (m *Machine) bring(ctx context.Context, t *image.Tree) (name string, err error) {
	if t == nil {
		return "-", nil
	}
	name = path.Base(strings.ReplaceAll(t.Digest, ":", "-"))
	if m.line.sent[name] {
		return name, nil
	}
	m.say("sending " + t.Digest + " to " + m.url)
	to := m.line.folder + "/trees/" + name
	err = m.send(ctx, "a root or its files", t.Tar, "sh", "-c",
		`mkdir -m 755 "$1" && exec tar --extract --file=- --directory="$1" --preserve-permissions --numeric-owner --xattrs --xattrs-include='*'`, "send", to)
	m.line.sent[name] = err == nil
	return name, err
}

// bringRuler sends the ruler, once.
func (m *Machine) bringRuler(ctx context.Context) error {
	if m.line.sent[m.ruler] {
		return nil
	}
	err := m.send(ctx, "the ruler", func(_ context.Context, w io.Writer) error {
		f, err := os.Open(m.ruler)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}, "sh", "-c", `cat >"$1" && chmod 755 "$1"`, "send", m.line.folder+"/ruler")
	m.line.sent[m.ruler] = err == nil
	return err
}

// Place makes a place for a load on the machine, with this root and these files. It first connects again if the connection was
// lost. The load has the machine's own network and all of its CPUs.
func (m *Machine) Place(ctx context.Context, root *image.Image, work *image.Tree) (engine.Guest, error) {
	if err := m.connected(ctx); err != nil {
		return nil, err
	}
	if err := m.bringRuler(ctx); err != nil {
		return nil, err
	}
	its, err := m.bring(ctx, &root.Tree)
	if err != nil {
		return nil, err
	}
	files, err := m.bring(ctx, work)
	if err != nil {
		return nil, err
	}
	conn, theirs, err := engine.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() // only the client's own copy may remain, or its end would go unnoticed
	cmd := m.session(context.Background(), "sh", "-c", place, "place", m.line.folder, its, files)
	cmd.Stdin, cmd.Stdout = theirs, theirs
	g := &guest{line: m.line}
	if g.process, err = engine.StartTied(cmd); err != nil {
		conn.Close()
		return nil, err
	}
	theirs.Close()
	hello, cancel := context.WithTimeout(ctx, engine.HelloTime)
	defer cancel()
	if g.client, err = ruler.Connect(hello, conn); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, errors.Join(fmt.Errorf("on %s: %w (%s)", m.url, err, g.Diagnose()), g.Destroy(context.WithoutCancel(ctx)))
	}
	return g, nil
}

// Close ends the connection, and returns when the machine has removed what was sent to it. It may be called more than once.
func (m *Machine) Close(ctx context.Context) error {
	if m.line == nil {
		return nil
	}
	if err := m.line.end(ctx); err != nil {
		return fmt.Errorf("load from %s: %w", m.url, err)
	}
	return nil
}

// end ends the keeper.
func (c *connection) end(ctx context.Context) error {
	select {
	case <-c.master.Done(): // the connection was lost, which the keeper has noticed
		c.alive.Close()
		return nil
	default:
	}
	c.alive.Close() // the keeper's input
	if err := c.master.End(ctx, closeTime); err != nil {
		return err
	}
	if how := c.master.State(); how != "exit status 0" && c.folder != "" {
		return fmt.Errorf("%s may be left there (ssh: %s)", c.folder, c.master.Ended())
	}
	return nil
}
