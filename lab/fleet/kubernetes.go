//go:build linux

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"tare/lab/fleet/kube"
	"tare/lab/proc"
	"tare/notebook"
)

// Kubernetes is the cluster of a context of the user's kubectl.
type Kubernetes struct {
	Context     string // empty: the current one
	Namespace   string // that exists; empty: each fleet makes one of its own, and deletes it
	Image       string
	Selector    string // nodes must have these labels, KEY=VALUE with commas between; empty: any
	Tolerations []kube.Toleration
}

const (
	// PodImage is the image of the pods unless users name another.
	PodImage = "busybox:stable"

	jobLimit    = 7 * 24 * time.Hour // ends what nobody collects
	deleteTime  = 3 * time.Minute    // for pods to end and objects to go
	podsAtOnce  = 8                  // transfers over the API, and calls of kubectl for nodes, at the same time
	requestTime = "--request-timeout=20s"
)

var (
	tolerationText = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._/-]*)(=[A-Za-z0-9._-]*)?(:(?:NoSchedule|NoExecute|PreferNoSchedule))?$`)
	selectorText   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*=[A-Za-z0-9._-]*(,[A-Za-z0-9][A-Za-z0-9._/-]*=[A-Za-z0-9._-]*)*$`)
)

// Set takes an option as `tare fleet run` and notebook.Fleet.With have it, such as context and a value.
func (k *Kubernetes) Set(name, value string) error {
	switch name {
	case "context":
		k.Context = value
	case "namespace":
		k.Namespace = value
	case "image":
		k.Image = value
	case "node-selector":
		if !selectorText.MatchString(value) {
			return fmt.Errorf("%q: must be labels of nodes such as pool=batch,disk=ssd", value)
		}
		k.Selector = value
	case "toleration":
		m := tolerationText.FindStringSubmatch(value)
		if m == nil {
			return fmt.Errorf("%q: must be KEY[=VALUE][:EFFECT], with the effect NoSchedule or NoExecute", value)
		}
		t := kube.Toleration{Key: m[1], Operator: "Exists", Effect: strings.TrimPrefix(m[3], ":")}
		if m[2] != "" {
			t.Operator, t.Value = "Equal", m[2][1:]
		}
		k.Tolerations = append(k.Tolerations, t)
	default:
		return fmt.Errorf("%q is not an option for Kubernetes", name)
	}
	return nil
}

// OnKubernetes is the cluster of a fleet.
func OnKubernetes(f *notebook.Fleet) (k Kubernetes, err error) {
	k.Image = PodImage
	for _, o := range f.With {
		name, value, _ := strings.Cut(strings.TrimPrefix(o, "--"), "=")
		if err := k.Set(name, value); err != nil {
			return k, fmt.Errorf(`%s: "with": --%s: %w`, notebook.FleetFile, name, err)
		}
	}
	return k, nil
}

// space is the namespace of a fleet.
func (k Kubernetes) space(f *notebook.Fleet) string {
	if k.Namespace != "" {
		return k.Namespace
	}
	return f.ID
}

// words are the arguments of kubectl. f is nil for what is in no namespace.
func (k Kubernetes) words(f *notebook.Fleet, args ...string) []string {
	var all []string
	if k.Context != "" {
		all = append(all, "--context="+k.Context)
	}
	if f != nil {
		all = append(all, "--namespace="+k.space(f))
	}
	return append(all, args...)
}

// kubectl runs it and returns what it prints. Its error is the last line of what kubectl said.
func (k Kubernetes) kubectl(ctx context.Context, limit time.Duration, in io.Reader, f *notebook.Fleet, args ...string) (out, said string, err error) {
	out, said, err = call(ctx, limit, in, "kubectl", k.words(f, args...)...)
	if last := lastLine(said); last != "" && errors.As(err, new(*exec.ExitError)) {
		err = fmt.Errorf("kubectl: %s", strings.TrimPrefix(last, "error: "))
	}
	return out, said, err
}

// do runs a short command of kubectl.
func (k Kubernetes) do(ctx context.Context, f *notebook.Fleet, args ...string) error {
	_, _, err := k.kubectl(ctx, commandTime, nil, f, append(args, requestTime)...)
	return err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// list asks for objects.
func (k Kubernetes) list(ctx context.Context, f *notebook.Fleet, args ...string) ([]kubeObject, error) {
	text, _, err := k.kubectl(ctx, commandTime, nil, f, append([]string{"get", "--output=json", requestTime}, args...)...)
	if err != nil {
		return nil, err
	}
	return parseObjects(text)
}

// Nodes are the cluster's nodes that the selector chooses, with what is against each.
func (k Kubernetes) Nodes(ctx context.Context) ([]Node, error) {
	// One question, because kubectl repeats others for minutes where no server answers.
	if _, _, err := k.kubectl(ctx, 15*time.Second, nil, nil, "get", "--raw=/version", "--request-timeout=10s"); err != nil {
		return nil, fmt.Errorf("the cluster does not answer: %w", err)
	}
	args := []string{"nodes"}
	if k.Selector != "" {
		args = append(args, "--selector="+k.Selector)
	}
	objects, err := k.list(ctx, nil, args...)
	if err != nil {
		return nil, err
	}
	var all []Node
	for _, o := range objects {
		all = append(all, o.node(k.Tolerations).Node)
	}
	if len(all) == 0 && k.Selector != "" {
		return nil, fmt.Errorf("--node-selector %s: the cluster has no node with these labels", k.Selector)
	}
	return all, nil
}

// objects are those for a number of nodes.
func (k Kubernetes) objects(f *notebook.Fleet, nodes int, collect bool) kube.Objects {
	o := kube.Objects{Fleet: f.ID, Job: fmt.Sprintf("%s-%04x", f.ID, rand.Uint32N(1<<16)), Namespace: k.space(f), OwnNamespace: k.Namespace == "", Nodes: nodes, Arch: runtime.GOARCH,
		Image: k.Image, Collect: collect, Limit: jobLimit, Tolerations: k.Tolerations}
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "TARE_") && name != "TARE_STATE" && strings.ToUpper(name) == name { // as sbatch does
			o.Env = append(o.Env, kube.Variable{Name: name, Value: value})
		}
	}
	return o
}

// Plan is what Run would do, for people to read.
func (k Kubernetes) Plan(f *notebook.Fleet) (string, error) {
	text, err := k.objects(f, len(f.Nodes), false).YAML()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, args := range [][]string{{"label", "node", "NODE", mine(f)}, {"taint", "node", "NODE", taint(f)}, {"apply", "-f", "-"}} {
		fmt.Fprintln(&b, "kubectl", strings.Join(k.words(nil, args...), " "))
	}
	return b.String() + "\n" + text, nil
}

func mine(f *notebook.Fleet) string   { return kube.Label + "=" + f.ID }
func taint(f *notebook.Fleet) string  { return mine(f) + ":NoSchedule" }
func caught(f *notebook.Fleet) string { return f.ID + "-collected" } // the label's value on a node whose results are here

// Check says why the user cannot run a fleet on nodes such as this one. It changes nothing.
func (k Kubernetes) Check(ctx context.Context, f *notebook.Fleet, node string) error {
	if _, err := k.objects(f, 1, false).YAML(); err != nil {
		return err
	}
	if err := k.do(ctx, nil, "label", "node", node, mine(f), "--dry-run=server"); err != nil {
		return fmt.Errorf("nodes cannot be labelled: %w", err)
	}
	if k.Namespace == "" {
		if err := k.do(ctx, nil, "create", "namespace", f.ID, "--dry-run=server"); err != nil {
			return fmt.Errorf("a namespace cannot be made: %w; --namespace names one that exists", err)
		}
		return nil
	}
	return k.apply(ctx, f, 1, false, "--dry-run=server")
}

// apply makes the objects for a number of nodes.
func (k Kubernetes) apply(ctx context.Context, f *notebook.Fleet, nodes int, collect bool, more ...string) error {
	text, err := k.objects(f, nodes, collect).YAML()
	if err != nil {
		return err
	}
	_, said, err := k.kubectl(ctx, commandTime, strings.NewReader(text), f, append([]string{"apply", "--filename=-", requestTime}, more...)...)
	if err != nil {
		return err
	}
	if strings.Contains(said, "would violate PodSecurity") { // of a job whose pods are forbidden the API only warns; it warns of others too
		return k.forbidden(ctx, f)
	}
	return nil
}

// forbidden says that the namespace forbids privileged pods, if it does. Not all users may ask.
func (k Kubernetes) forbidden(ctx context.Context, f *notebook.Fleet) error {
	const label = "pod-security.kubernetes.io/enforce"
	text, _, err := k.kubectl(ctx, commandTime, nil, nil, "get", "namespace", k.space(f), requestTime, "--output=json")
	if err != nil {
		return nil
	}
	var space kubeObject
	if err := json.Unmarshal([]byte(text), &space); err != nil {
		return fmt.Errorf("the namespace %s: kubectl printed something else than an object: %w", k.space(f), err)
	}
	if level := space.Metadata.Labels[label]; level != "" && level != "privileged" {
		return fmt.Errorf("the namespace %s forbids privileged pods (%s=%s), and bare metal needs them: name one that allows them, or leave --namespace out", k.space(f), label, level)
	}
	return nil
}

// refusal is why the cluster makes no pods for the fleet's jobs, by its events; empty: it does not say.
func (k Kubernetes) refusal(ctx context.Context, f *notebook.Fleet, jobs []kubeJob) string {
	events, err := k.list(ctx, f, "events", "--field-selector=reason=FailedCreate")
	if err != nil {
		return ""
	}
	for _, e := range events {
		for _, j := range jobs {
			if e.Involved.Name == j.name {
				return e.Message
			}
		}
	}
	return ""
}

// sight is what a cluster has of a fleet.
type sight struct {
	nodes []kubeNode // that the fleet holds
	jobs  []kubeJob
	pods  []kubePod
}

// look asks for it.
func (k Kubernetes) look(ctx context.Context, f *notebook.Fleet) (s sight, err error) {
	nodes, err := k.list(ctx, nil, "nodes", fmt.Sprintf("--selector=%s in (%s,%s)", kube.Label, f.ID, caught(f)))
	if err != nil {
		return s, err
	}
	others, err := k.list(ctx, f, "jobs,pods", "--selector="+mine(f))
	if err != nil {
		return s, err
	}
	for _, o := range nodes {
		s.nodes = append(s.nodes, o.node(k.Tolerations))
	}
	for _, o := range others {
		switch o.Kind {
		case "Job":
			s.jobs = append(s.jobs, o.job())
		case "Pod":
			s.pods = append(s.pods, o.pod())
		}
	}
	return s, nil
}

// on is the fleet's pod on a node: the one that has not ended, if there is one.
func (s sight) on(node string) (pod kubePod, is bool) {
	for _, p := range s.pods {
		if p.node == node && (!is || pod.over && !p.over || pod.over == p.over && p.left) {
			pod, is = p, true
		}
	}
	return pod, is
}

// left is how many nodes the jobs have still pods for.
func (s sight) left() (n int) {
	for _, j := range s.jobs {
		n += j.left
	}
	return n
}

// unplaced says why a pod has no node yet; empty: each has one.
func (s sight) unplaced() string {
	for _, p := range s.pods {
		if p.node == "" && !p.over && p.why != "" {
			return p.why
		}
	}
	return ""
}

// Jobs are the tasks of the fleet that have not ended, by node.
func (k Kubernetes) Jobs(ctx context.Context, f *notebook.Fleet) (map[string]Job, error) {
	s, err := k.look(ctx, f)
	if err != nil {
		return nil, err
	}
	all := map[string]Job{}
	for _, n := range s.nodes {
		p, is := s.on(n.Name)
		switch {
		case is && n.ready && !p.over && p.begun:
			all[n.Name] = Job{ID: p.name, Running: true, Ended: p.ended}
		case is && !p.over:
			all[n.Name] = Job{ID: p.name, Why: firstOf(n.against, p.why, "its pod starts")}
		default:
			all[n.Name] = Job{Why: firstOf(n.against, s.unplaced(), "it has no pod yet")}
		}
	}
	return all, nil
}

func firstOf(all ...string) string {
	for _, text := range all {
		if text != "" {
			return text
		}
	}
	return ""
}

// hold labels and taints a node for a fleet. It fails where another fleet has it.
func (k Kubernetes) hold(ctx context.Context, f *notebook.Fleet, node string) error {
	if err := k.do(ctx, nil, "label", "node", node, mine(f)); err != nil {
		return err
	}
	if err := k.do(ctx, nil, "taint", "node", node, taint(f), "--overwrite"); err != nil {
		return errors.Join(err, k.do(context.WithoutCancel(ctx), nil, "label", "node", node, kube.Label+"-"))
	}
	return nil
}

// free gives a node back to the cluster.
func (k Kubernetes) free(ctx context.Context, n kubeNode) error {
	if n.tainted {
		if err := k.do(ctx, nil, "taint", "node", n.Name, kube.Label+"-"); err != nil {
			return err
		}
	}
	return k.do(ctx, nil, "label", "node", n.Name, kube.Label+"-")
}

// remove deletes the fleet's objects, and returns when they are gone.
func (k Kubernetes) remove(ctx context.Context, f *notebook.Fleet) error {
	within := fmt.Sprintf("--timeout=%v", deleteTime-10*time.Second)
	// The jobs first: they hold their pods, and a namespace whose pods stay does not go.
	for _, args := range [][]string{
		{"delete", "jobs", "--selector=" + mine(f), "--cascade=foreground", within},
		{"delete", "serviceaccount", f.ID, "--ignore-not-found", within},
	} {
		if _, _, err := k.kubectl(ctx, deleteTime, nil, f, args...); err != nil {
			return err
		}
	}
	if k.Namespace != "" {
		return nil
	}
	_, _, err := k.kubectl(ctx, deleteTime, nil, nil, "delete", "namespace", f.ID, "--ignore-not-found", within)
	return err
}

// podLine is the line to a node through the container of a pod that keeps the results.
type podLine struct {
	k   Kubernetes
	f   *notebook.Fleet
	pod string
}

// Run implements Line.
func (p podLine) Run(ctx context.Context, in io.Reader, out, said io.Writer, args ...string) error {
	words := []string{"exec", p.pod, "--container=" + kube.Results}
	if in != nil {
		words = append(words, "--stdin")
	}
	cmd := exec.CommandContext(ctx, "kubectl", p.k.words(p.f, append(append(words, "--"), args...)...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, said
	cmd.WaitDelay = time.Second
	defer proc.Tie(cmd)() // a terminal's interrupt reaches only Tare
	return cmd.Run()
}
