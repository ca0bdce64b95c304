//go:build linux

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tare/lab/fleet/kube"
	"tare/notebook"
	"tare/notebook/durable"
)

// Step is what happened to a node.
type Step int

// The steps of a node's task on Kubernetes.
const (
	Waits     Step = iota // for what is said
	Sent                  // Tare and the study are there
	Measures              // its task has begun
	Replaced              // its task ended before the run did, and the cluster starts another pod
	Collected             // its results are here
	Freed                 // nothing of the fleet is there
	Trouble               // said
)

// Tell gets what happens to nodes, from several goroutines. node is empty for the cluster as a whole.
type Tell func(node string, step Step, said string)

const (
	mostTries   = 3 // for what can fail by chance: a transfer, a pod
	noPodTime   = 15 * time.Second
	blindTime   = 10 * time.Minute // without an answer of the API
	awayTime    = 10 * time.Minute // for a node that is not ready to come back
	cancelTime  = 20 * time.Minute
	collectTime = 2 * time.Minute // for a pod that only brings results back to begin
	clockMost   = 2 * time.Minute // what two clocks may differ
	mostLog     = 16 << 20        // bytes of a task's log
)

// How often the API is asked, how long after a visit that failed the next one begins, and after which time of failures a node is given up.
var lookEvery, againTime, giveUpTime = 3 * time.Second, 10 * time.Second, 5 * time.Minute

// gathering carries a study to the nodes of a cluster, and their results back. It keeps what it has to know in the cluster: a node has the
// fleet's label until its results are here, and then that of caught until its folder there is gone.
type gathering struct {
	k       Kubernetes
	dir     string
	f       *notebook.Fleet
	collect bool // nothing is measured
	tell    Tell

	again  time.Duration // after a visit that failed
	begun  bool          // the fleet has had a pod
	hadPod time.Time     // when it had one last, or the first look was
	slots  chan struct{} // for transfers
	work   sync.WaitGroup
	mu     sync.Mutex
	nodes  map[string]*visit
}

// visit is what this process knows of a node.
type visit struct {
	busy     bool
	pod      string // the last one that was visited
	released string // the last one that was told to remove the folder
	next     time.Time
	every    time.Duration // from one fetch to the next: short at first, when people look
	failed   int           // visits, one after the other
	since    time.Time     // of the first of them
	replaced int           // pods that ended before the run did
	told     string        // the last that once told
	given    bool          // up: nothing more is tried
}

// Run starts tasks on nodes of the cluster, and returns when the results of all nodes that the fleet holds are here. When ctx is done, the tasks
// go on, and another Run collects them.
func (k Kubernetes) Run(ctx context.Context, dir string, f *notebook.Fleet, nodes []string, tell Tell) error {
	g := k.gathering(dir, f, tell)
	s, err := k.look(ctx, f)
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, n := range s.nodes {
		held[n.Name] = n.tainted // an interrupt may have come between label and taint
	}
	var wanted []string
	for _, n := range nodes {
		if !held[n] {
			wanted = append(wanted, n)
		}
	}
	for _, node := range wanted {
		g.each(func() {
			if ctx.Err() != nil {
				return
			}
			if err := k.hold(ctx, f, node); err != nil {
				tell(node, Trouble, err.Error())
			}
		})
	}
	g.work.Wait()
	if s, err = k.look(ctx, f); err != nil {
		return err
	}
	open := 0
	for _, n := range s.nodes {
		if n.label == f.ID {
			open++
		}
	}
	if more := open - s.left(); more > 0 {
		if err := k.apply(ctx, f, more, false); err != nil {
			return errors.Join(err, k.undo(context.WithoutCancel(ctx), f, wanted))
		}
	}
	err = g.run(ctx)
	if errors.Is(err, errRefused) {
		err = errors.Join(err, k.undo(context.WithoutCancel(ctx), f, wanted))
	}
	return err
}

// errRefused says that a rule of the cluster is against pods of the fleet.
var errRefused = errors.New("the cluster refuses to make the pods")

func (k Kubernetes) gathering(dir string, f *notebook.Fleet, tell Tell) *gathering {
	return &gathering{k: k, dir: dir, f: f, tell: tell, again: againTime, slots: make(chan struct{}, podsAtOnce), nodes: map[string]*visit{}}
}

// undo gives nodes back after a start that failed, and removes the objects unless tasks of other nodes go on.
func (k Kubernetes) undo(ctx context.Context, f *notebook.Fleet, nodes []string) error {
	s, err := k.look(ctx, f)
	if err != nil {
		return err
	}
	back := slices.DeleteFunc(slices.Clone(s.nodes), func(n kubeNode) bool { return !slices.Contains(nodes, n.Name) })
	err = onEach(back, func(n kubeNode) error { return k.free(ctx, n) })
	if len(back) < len(s.nodes) || err != nil {
		return err
	}
	return k.remove(ctx, f)
}

// each calls a function in a goroutine of its own, not too many at the same time.
func (g *gathering) each(do func()) {
	g.work.Go(func() {
		g.slots <- struct{}{}
		defer func() { <-g.slots }()
		do()
	})
}

// onEach does something with each of all, with a few of them at the same time. It goes on after errors, and returns all.
func onEach[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(podsAtOnce)
	for i, one := range all {
		group.Go(func() error {
			errs[i] = do(one)
			return nil
		})
	}
	return errors.Join(append(errs, group.Wait())...)
}

// errHeld is in the chain of an error that says that nodes are still the fleet's.
var errHeld = errors.New("the same command goes on with them, and tare fleet cancel gives them back")

func reserved(why string, nodes []kubeNode) error {
	return fmt.Errorf("%sthe fleet still has %s: %w", why, names(nodes), errHeld)
}

// names are the first of the nodes' names.
func names(nodes []kubeNode) string {
	const most = 8
	var all []string
	for _, n := range nodes[:min(most, len(nodes))] {
		all = append(all, n.Name)
	}
	text := strings.Join(all, ", ")
	if more := len(nodes) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// run visits the nodes until the results of all are here, and removes the fleet's objects then.
func (g *gathering) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer g.work.Wait()
	defer stop() // ends transfers from nodes that are away
	began := time.Now()
	answered := began
	for {
		s, err := g.k.look(ctx, g.f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && time.Since(answered) > blindTime:
			return err
		case err != nil:
			g.once("", Trouble, err.Error())
		default:
			answered = time.Now()
			left, err := g.step(ctx, s, began)
			if err != nil {
				return err
			}
			if len(s.nodes) == 0 && left == 0 {
				return g.k.remove(ctx, g.f)
			}
			if left == 0 && g.collect {
				return g.force(ctx, s)
			}
			if left == 0 {
				return reserved("", s.nodes)
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(max(lookEvery, time.Duration(len(g.nodes))*20*time.Millisecond)): // the API would tell, for the price of a connection that can be lost
		}
	}
}

// force gives nodes back that cannot be collected.
func (g *gathering) force(ctx context.Context, s sight) error {
	err := errors.Join(g.k.end(ctx, g.f), onEach(s.nodes, func(n kubeNode) error { return g.k.free(ctx, n) }))
	return errors.Join(err, g.k.remove(ctx, g.f), stays(g.f, s.nodes))
}

// stays says what nodes keep that could not be reached.
func stays(f *notebook.Fleet, nodes []kubeNode) error {
	if len(nodes) == 0 {
		return nil
	}
	return fmt.Errorf("%s could not be reached; label and taint are removed there, but not %s", names(nodes), kube.Folder(f.ID))
}

// once tells something that has not just been told.
func (g *gathering) once(node string, step Step, said string) {
	g.mu.Lock()
	v := g.visit(node)
	now := fmt.Sprint(step, said)
	told := v.told == now
	v.told = now
	g.mu.Unlock()
	if !told {
		g.tell(node, step, said)
	}
}

// visit is what is known of a node. The caller has the lock.
func (g *gathering) visit(node string) *visit {
	v := g.nodes[node]
	if v == nil {
		v = &visit{}
		g.nodes[node] = v
	}
	return v
}

// step does what each node needs next, and returns how many still need something.
func (g *gathering) step(ctx context.Context, s sight, began time.Time) (left int, err error) {
	pods, busy := 0, 0
	for _, p := range s.pods {
		if !p.over {
			pods++
		}
	}
	for _, n := range s.nodes {
		p, is := s.on(n.Name)
		is = is && !p.over
		g.mu.Lock()
		v := g.visit(n.Name)
		if v.busy {
			busy++
		}
		skip := v.busy || is && v.released == p.name || time.Now().Before(v.next) && (v.failed > 0 || p.name == v.pod && !p.ended)
		met, given := v.pod == p.name, v.given
		g.mu.Unlock()
		given = given || g.collect && !(is && p.results) && time.Since(began) > collectTime // unless its pod comes
		if !n.ready && !n.since.IsZero() && time.Since(n.since) > awayTime {
			g.once(n.Name, Waits, n.against)
			given = true // unless it comes back
		}
		if given {
			continue
		}
		left++
		if is && n.ready && p.begun && !p.ended && met {
			g.once(n.Name, Measures, "")
		}
		if skip {
			continue
		}
		switch {
		case n.label != g.f.ID && !is:
			g.start(n.Name, func() error { return g.finished(ctx, n, p) })
		case !is || p.deleting || !n.ready || !p.results:
			if why := firstOf(n.against, p.why, s.unplaced()); why != "" && time.Since(began) > 2*lookEvery {
				g.once(n.Name, Waits, why)
			}
		default:
			g.start(n.Name, func() error { return g.meet(ctx, n, p) })
		}
	}
	g.begun = g.begun || len(s.pods) > 0
	if pods > 0 || g.hadPod.IsZero() {
		g.hadPod = time.Now()
	}
	if left > 0 && busy == 0 && time.Since(g.hadPod) > noPodTime {
		err = g.podless(ctx, s)
	}
	return left, err
}

// podless says why the fleet has no pod: with an error if none will come.
func (g *gathering) podless(ctx context.Context, s sight) error {
	over := "the cluster has no job of the fleet any more, and "
	for _, j := range s.jobs {
		if j.over == "" {
			why := g.k.refusal(ctx, g.f, s.jobs)
			if why != "" && !g.begun { // a rule that came later may go again, and nodes have results
				return fmt.Errorf("%w: %s", errRefused, why)
			}
			g.once("", Waits, fmt.Sprintf("the cluster has made no pod yet; kubectl --namespace %s describe job %s says why", g.k.space(g.f), j.name))
			return nil
		}
		over = fmt.Sprintf("the job %s has ended (%s), and ", j.name, j.over)
	}
	return reserved(over, s.nodes)
}

// start visits a node. A visit that fails is repeated a few times.
func (g *gathering) start(node string, do func() error) {
	g.mu.Lock()
	g.visit(node).busy = true
	g.mu.Unlock()
	g.each(func() {
		err := do()
		g.mu.Lock()
		v := g.visit(node)
		v.busy = false
		if err == nil {
			v.failed, v.given = 0, false
		} else {
			if v.failed++; v.failed == 1 {
				v.since = time.Now()
			}
			v.next = time.Now().Add(g.again)
			v.given = v.failed >= mostTries && (g.collect || time.Since(v.since) >= giveUpTime)
		}
		said := v.failed == mostTries
		g.mu.Unlock()
		if said {
			g.tell(node, Trouble, err.Error())
		}
	})
}

// meet does what the pod of a node needs: it gets Tare and the study, its results come back now and then, and after its task's end it removes
// what the node has of the fleet.
func (g *gathering) meet(ctx context.Context, n kubeNode, p kubePod) error {
	c := carrier{podLine{g.k, g.f, p.name}, g.dir, n.Name, kube.Mount}
	g.mu.Lock()
	v := g.visit(n.Name)
	first := v.pod != p.name
	g.mu.Unlock()
	if first {
		if err := g.greet(ctx, c); err != nil {
			return err
		}
		g.mu.Lock()
		v.pod, v.every, v.next = p.name, firstFetch, time.Now().Add(firstFetch)
		g.mu.Unlock()
		if !p.ended {
			return nil
		}
	}
	bounded, cancel := context.WithTimeoutCause(ctx, transferTime, fmt.Errorf("the transfer took more than %v", transferTime))
	defer cancel()
	if err := c.fetch(bounded); err != nil && !errors.Is(err, errNothing) {
		return fmt.Errorf("the results did not come back: %w", err)
	}
	if err := g.log(ctx, c, p); err != nil {
		g.once(n.Name, Trouble, "its log did not come back: "+err.Error())
	}
	g.mu.Lock()
	v.every = min(2*v.every, fetchEvery)
	v.next = time.Now().Add(v.every)
	again := p.ended && v.replaced < mostTries && !g.collect && n.label == g.f.ID
	g.mu.Unlock()
	if !p.ended {
		return nil
	}
	task, said, err := notebook.ReadTask(g.dir, n.Name)
	if err != nil {
		return err
	}
	whole := said && task.Job == p.name && (task.State == notebook.TaskDone || task.State == notebook.TaskFailed)
	if p.exit != 0 && !whole && again { // it was killed
		g.mu.Lock()
		v.replaced++
		g.mu.Unlock()
		g.tell(n.Name, Replaced, fmt.Sprintf("status %d", p.exit))
		return g.k.do(ctx, g.f, "delete", "pod", p.name, "--wait=false")
	}
	if !whole && !g.collect && n.label == g.f.ID {
		g.tell(n.Name, Trouble, fmt.Sprintf("its task ended with status %d before its run did", p.exit))
	}
	return g.release(ctx, c, n, p.name)
}

// greet sends Tare and the study unless they are there, and compares the clocks.
func (g *gathering) greet(ctx context.Context, c carrier) error {
	ready := path.Join(kube.Mount, kube.Ready)
	there, err := c.has(ctx, ready)
	if err != nil {
		return err
	}
	if !there {
		if err := c.send(ctx, g.f); err != nil {
			return err
		}
		if _, err := c.ask(ctx, "touch", ready); err != nil {
			return err
		}
		g.tell(c.node, Sent, "")
	}
	before := time.Now()
	text, err := c.ask(ctx, "date", "+%s")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return fmt.Errorf("its clock: date printed %q", text)
	}
	ahead := time.Unix(seconds, 0).Sub(before.Add(time.Since(before) / 2)).Round(time.Second)
	return writeClock(g.dir, c.node, ahead)
}

// log brings back what the task printed.
func (g *gathering) log(ctx context.Context, c carrier, p kubePod) error {
	if g.collect { // its pod runs no task
		return nil
	}
	text, _, err := g.k.kubectl(ctx, commandTime, nil, g.f, "logs", p.name, "--container="+kube.Measures, fmt.Sprintf("--limit-bytes=%d", mostLog), requestTime)
	if err != nil {
		return err
	}
	return durable.WriteFile(Log(g.dir, c.node), []byte(text), 0o644)
}

// release lets the pod remove the fleet's folder, after a mark that the results are here.
func (g *gathering) release(ctx context.Context, c carrier, n kubeNode, pod string) error {
	if n.label == g.f.ID {
		if err := g.k.do(ctx, nil, "label", "node", n.Name, kube.Label+"="+caught(g.f), "--overwrite"); err != nil {
			return err
		}
		g.tell(n.Name, Collected, "")
	}
	_, err := c.ask(ctx, "sh", "-c", `echo >"$1"`, "sh", kube.Collected)
	if err == nil {
		g.mu.Lock()
		g.visit(n.Name).released = pod
		g.mu.Unlock()
	}
	return err
}

// finished gives a node back whose results are here and whose pod has ended. Where the pod ended before the folder was gone, another one comes.
func (g *gathering) finished(ctx context.Context, n kubeNode, p kubePod) error {
	if p.left {
		if err := g.k.free(ctx, n); err != nil {
			return err
		}
		g.tell(n.Name, Freed, "")
		return nil
	}
	g.mu.Lock()
	v := g.visit(n.Name)
	v.replaced++
	again := v.replaced <= mostTries
	g.mu.Unlock()
	if !again {
		return fmt.Errorf("%s is still there: kubectl --namespace %s logs %s --container %s says why", kube.Folder(g.f.ID), g.k.space(g.f), p.name, kube.Results)
	}
	return g.k.do(ctx, nil, "label", "node", n.Name, mine(g.f), "--overwrite")
}

// Cancel ends the tasks of a fleet, brings back their results, and removes what the cluster and its nodes have of the fleet. It returns how many
// nodes the fleet held.
func (k Kubernetes) Cancel(ctx context.Context, dir string, f *notebook.Fleet, tell Tell) (held int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cancelTime, fmt.Errorf("not all has ended within %v", cancelTime))
	defer cancel()
	s, err := k.look(ctx, f)
	if err != nil {
		return 0, err
	}
	if held = len(s.nodes); held == 0 {
		return 0, k.remove(ctx, f)
	}
	if err := k.end(ctx, f); err != nil {
		return held, err
	}
	var ready, away []kubeNode
	for _, n := range s.nodes {
		if n.ready {
			ready = append(ready, n)
		} else {
			away = append(away, n)
		}
	}
	err = errors.Join(
		onEach(ready, func(n kubeNode) error { return k.do(ctx, nil, "label", "node", n.Name, mine(f), "--overwrite") }),
		onEach(away, func(n kubeNode) error { return k.free(ctx, n) }))
	if err != nil {
		return held, err
	}
	if len(ready) == 0 {
		return held, errors.Join(k.remove(ctx, f), stays(f, away))
	}
	if err := k.apply(ctx, f, len(ready), true); err != nil {
		return held, err
	}
	g := k.gathering(dir, f, tell)
	g.collect, g.again = true, lookEvery
	return held, errors.Join(g.run(ctx), stays(f, away))
}

// end ends the fleet's pods. Those on nodes that are not ready only lose their objects.
func (k Kubernetes) end(ctx context.Context, f *notebook.Fleet) error {
	if err := k.do(ctx, f, "delete", "jobs", "--selector="+mine(f), "--cascade=background", "--wait=false"); err != nil {
		return err
	}
	for until := time.Now().Add(deleteTime); ; {
		s, err := k.look(ctx, f)
		if err != nil {
			return err
		}
		ready := map[string]bool{}
		for _, n := range s.nodes {
			ready[n.Name] = n.ready
		}
		live := 0
		var lost []kubePod
		for _, p := range s.pods {
			switch {
			case p.over:
			case p.node == "" || ready[p.node]:
				live++
			default:
				lost = append(lost, p)
			}
		}
		err = onEach(lost, func(p kubePod) error {
			return k.do(ctx, f, "delete", "pod", p.name, "--force", "--grace-period=0", "--wait=false", "--ignore-not-found")
		})
		if err != nil {
			return err
		}
		if live == 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d pods still end after %v; the same command goes on", live, deleteTime)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second): // the API would tell, for the price of a connection that can be lost
		}
	}
}

// clockFile says how far the clock of a node is ahead of that of the machine with the fleet's folder, if that is much.
func clockFile(dir, node string) string { return strings.TrimSuffix(Log(dir, node), ".txt") + ".clock" }

func writeClock(dir, node string, ahead time.Duration) error {
	if ahead.Abs() > clockMost {
		return durable.WriteFile(clockFile(dir, node), []byte(ahead.String()+"\n"), 0o644)
	}
	if err := os.Remove(clockFile(dir, node)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readClock returns what writeClock wrote. Where there is nothing, or something else, the clocks agree.
func readClock(dir, node string) time.Duration {
	text, err := os.ReadFile(clockFile(dir, node))
	if err != nil {
		return 0
	}
	ahead, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return ahead
}
