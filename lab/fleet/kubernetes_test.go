//go:build linux

package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/fleet/kube"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

func readTestdata(t testing.TB, name string) []kubeObject {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseObjects(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// nodes.json is what a real cluster said of a node, and the same with what is usual elsewhere.
func TestNodesOfKubernetes(t *testing.T) {
	defer func(was string) { arch = was }(arch)
	arch = "x86_64"
	why := map[string]string{}
	var nodes []Node
	tolerated := Kubernetes{}
	if err := tolerated.Set("toleration", "gpu=only"); err != nil {
		t.Fatal(err)
	}
	for _, o := range readTestdata(t, "nodes.json") {
		nodes = append(nodes, o.node(nil).Node)
		if n := o.node(tolerated.Tolerations); n.Name == "n4" && n.Why != "" {
			t.Errorf("a tolerated taint: %s", n.Why)
		}
	}
	chosen, left := Choose(nodes, 0)
	for _, n := range left {
		why[n.Name] = n.Why
	}
	want := map[string]string{"n2": "it is cordoned", "n3": "it is not ready: Kubelet stopped posting node status.", "n4": "it has the taint gpu=only:NoSchedule; --toleration gpu=only:NoSchedule allows it",
		"n5": "its architecture is aarch64, and this Tare is for x86_64", "n6": "its operating system is windows", "n7": "the fleet tare-0a measures on it"}
	if fmt.Sprint(why) != fmt.Sprint(want) {
		t.Errorf("left out %v, want %v", why, want)
	}
	if len(chosen) != 2 || chosen[0].Name != "n1" || chosen[1].Name != "n8" {
		t.Errorf("chosen %v", chosen)
	}
}

// objects.json is a job and a pod of a real cluster, and the same pod in other states.
func TestPodsOfKubernetes(t *testing.T) {
	all := readTestdata(t, "objects.json")
	if j := all[0].job(); j.left != 2 || j.over != "" {
		t.Errorf("the job: %+v", j)
	}
	var s sight
	for _, o := range all[1:] {
		s.pods = append(s.pods, o.pod())
	}
	if p, is := s.on("n1"); !is || p.over || !p.results || !p.begun || p.ended {
		t.Errorf("a pod that measures, after one that was deleted: %+v", p)
	}
	if p, _ := s.on("n2"); !p.results || !p.ended || p.exit != 137 {
		t.Errorf("a pod whose task was killed: %+v", p)
	}
	if p, _ := s.on("n4"); p.results || p.begun || p.why != "ErrImagePull: not found" {
		t.Errorf("a pod without its image: %+v", p)
	}
	if p, _ := s.on("n7"); !p.over || !p.left {
		t.Errorf("a pod at its end: %+v", p)
	}
	if p, _ := s.on("n8"); !p.deleting {
		t.Errorf("a pod that is deleted: %+v", p)
	}
	if why := s.unplaced(); !strings.Contains(why, "unschedulable") {
		t.Errorf("a pod without a node: %q", why)
	}
}

func TestOptionsOfKubernetes(t *testing.T) {
	for option, want := range map[string]kube.Toleration{
		"gpu": {Key: "gpu", Operator: "Exists"}, "gpu=a:NoSchedule": {Key: "gpu", Operator: "Equal", Value: "a", Effect: "NoSchedule"}, "a.b/c:NoExecute": {Key: "a.b/c", Operator: "Exists", Effect: "NoExecute"},
		"a=": {Key: "a", Operator: "Equal"},
	} {
		k, err := OnKubernetes(&notebook.Fleet{With: []string{"--toleration=" + option, "--namespace=n"}})
		if err != nil || k.Tolerations[0] != want || k.Namespace != "n" || k.Image != PodImage {
			t.Errorf("%s: %+v, %v", option, k, err)
		}
	}
	for _, bad := range []string{"--toleration=a:Never", "--toleration=", "--node-selector=a", "--node-selector=-l,a=b", "--kubeconfig=x"} {
		if _, err := OnKubernetes(&notebook.Fleet{With: []string{bad}}); err == nil {
			t.Errorf("%s is allowed", bad)
		}
	}
}

func FuzzKubernetes(f *testing.F) {
	// Short ones: the fuzzer would make the files in testdata shorter for minutes.
	f.Add(`{"items":[{"kind":"Node","metadata":{"name":"n1","labels":{"tare-fleet":"x"}},"spec":{"unschedulable":true,"taints":[{"key":"gpu","value":"only","effect":"NoSchedule"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`, "gpu=only:NoSchedule")
	f.Add(`{"items":[{"kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n1"},"status":{"phase":"Running","containerStatuses":[{"name":"tare","state":{"terminated":{"exitCode":1}}}]}}]}`, "gpu")
	f.Fuzz(func(t *testing.T, text, toleration string) {
		var k Kubernetes
		_ = k.Set("toleration", toleration) // most are refused
		_ = k.Set("node-selector", toleration)
		if strings.HasPrefix(k.Selector, "-") {
			t.Errorf("a selector that is an option: %q", k.Selector)
		}
		all, err := parseObjects(text)
		if err != nil {
			return
		}
		var s sight
		for _, o := range all {
			s.nodes, s.pods, s.jobs = append(s.nodes, o.node(k.Tolerations)), append(s.pods, o.pod()), append(s.jobs, o.job())
		}
		for _, p := range s.pods {
			if strings.HasPrefix(p.name, "-") {
				t.Errorf("a name that is an option: %q", p.name)
			}
			s.on(p.node)
		}
		s.left()
		s.unplaced()
	})
}

// fakeCluster is what the tests' kubectl, which is this test program, knows of a cluster. Its pods measure nothing: their results are there.
type fakeCluster struct {
	Nodes  map[string]*fakeNode
	Job    int      // nodes that it is for
	Space  bool     // the namespace exists
	Errors []string // what kubectl should not have been asked
}

type fakeNode struct {
	Label   string
	Tainted bool
	Ready   bool // the file
	Pod     string
	Polls   int  // of its pod, until its task ends
	Over    bool // its pod has ended
	Exit    int  // of its task
	Cut     int  // archives that come cut off
	Mute    bool // its pod answers nothing
	Sent    int  // times that it got the program
}

const fakeVariable = "TARE_FLEET_TEST_KUBECTL" // the folder with cluster.json, and a folder for each node

func TestMain(m *testing.M) {
	if dir := os.Getenv(fakeVariable); dir != "" && filepath.Base(os.Args[0]) == "kubectl" {
		os.Exit(fakeKubectl(dir, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func change(dir string, do func(c *fakeCluster)) {
	f, err := os.OpenFile(filepath.Join(dir, "cluster.json"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		panic(err)
	}
	var c fakeCluster
	_ = json.NewDecoder(f).Decode(&c) // empty at first
	do(&c)
	text, err := json.Marshal(c)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	if err != nil {
		panic(err)
	}
}

// fakeKubectl answers as a cluster that does what it is told at once.
func fakeKubectl(dir string, args []string) (status int) {
	args = slices.DeleteFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--namespace=") || strings.HasPrefix(a, "--request-timeout=")
	})
	fail := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...); status = 1 }
	line := strings.Join(args, " ")
	if args[0] == "exec" {
		return fakeExec(dir, args[1], args[slices.Index(args, "--")+1:])
	}
	change(dir, func(c *fakeCluster) {
		switch {
		case strings.HasPrefix(line, "get --output=json nodes"):
			c.list("Node")
		case strings.HasPrefix(line, "get --output=json jobs,pods"):
			c.list("Pod")
		case args[0] == "label":
			n, value := c.Nodes[args[2]], strings.TrimPrefix(args[3], kube.Label+"=")
			if value == kube.Label+"-" {
				value = ""
			} else if n.Label != "" && n.Label != value && !slices.Contains(args, "--overwrite") {
				fail("error: 'tare-fleet' already has a value (%s), and --overwrite is false", n.Label)
				return
			}
			n.Label = value
		case args[0] == "taint":
			c.Nodes[args[2]].Tainted = !strings.HasSuffix(args[3], "-")
		case args[0] == "apply":
			c.Space = true
			for name, n := range c.Nodes {
				if n.Label != "" && n.Pod == "" && strings.HasPrefix(n.Label, "tare-1") {
					c.Job++
					n.Pod = "pod-" + name
				}
			}
		case args[0] == "logs":
			fmt.Println("a log")
		case strings.HasPrefix(line, "delete jobs"):
			c.Job = 0
			for _, n := range c.Nodes {
				n.Pod, n.Over = "", false
			}
		case strings.HasPrefix(line, "delete serviceaccount"):
		case strings.HasPrefix(line, "delete namespace"):
			c.Space = false
		default:
			c.Errors = append(c.Errors, line)
			fail("unexpected: %s", line)
		}
	})
	return status
}

// list prints the nodes of the fleet, or its job and pods.
func (c *fakeCluster) list(kind string) {
	var all []string
	if kind == "Pod" && c.Job > 0 {
		all = append(all, fmt.Sprintf(`{"kind":"Job","metadata":{"name":"tare-1-x"},"spec":{"completions":%d}}`, c.Job))
	}
	for name, n := range c.Nodes {
		switch {
		case kind == "Node" && strings.HasPrefix(n.Label, "tare-1"):
			taints := ""
			if n.Tainted {
				taints = `{"key":"tare-fleet","effect":"NoSchedule"}`
			}
			all = append(all, fmt.Sprintf(`{"kind":"Node","metadata":{"name":%q,"labels":{"tare-fleet":%q}},"spec":{"taints":[%s]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, name, n.Label, taints))
		case kind == "Pod" && n.Pod != "":
			phase, task, results := "Running", `"running":{}`, `"running":{}`
			if n.Ready {
				if n.Polls++; n.Polls > 1 {
					task = fmt.Sprintf(`"terminated":{"exitCode":%d}`, n.Exit)
				}
			}
			if n.Over {
				phase, results = map[bool]string{true: "Succeeded", false: "Failed"}[n.Exit == 0], `"terminated":{"exitCode":0}`
			}
			all = append(all, fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q},"spec":{"nodeName":%q},"status":{"phase":%q,"containerStatuses":[{"name":"tare","state":{%s}},{"name":"results","state":{%s}}]}}`,
				n.Pod, name, phase, task, results))
		}
	}
	fmt.Printf(`{"items":[%s]}`, strings.Join(all, ","))
}

// fakeExec runs what Tare runs in a pod.
func fakeExec(dir, pod string, args []string) (status int) {
	node := strings.TrimPrefix(pod, "pod-")
	at := filepath.Join(dir, node)
	var n fakeNode
	do := func(with func(n *fakeNode)) {
		change(dir, func(c *fakeCluster) { with(c.Nodes[node]); n = *c.Nodes[node] })
	}
	do(func(*fakeNode) {}) // only read
	if n.Mute {
		fmt.Fprintln(os.Stderr, "error: unable to upgrade connection")
		return 1
	}
	fake := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	switch line := strings.Join(args, " "); {
	case line == "uname -m":
		fmt.Println(arch)
	case strings.HasPrefix(line, "sh -c if [ -e"):
		name := args[len(args)-1]
		_, err := os.Stat(filepath.Join(at, strings.TrimPrefix(name, "/fleet")))
		if err == nil || n.Ready && name == "/fleet/ready" {
			fmt.Println("yes")
		}
	case line == "touch /fleet/ready":
		do(func(n *fakeNode) { n.Ready = true })
	case line == "date +%s":
		fmt.Println(time.Now().Add(map[bool]time.Duration{true: time.Hour}[node == "n2"]).Unix())
	case args[0] == "sh" && args[len(args)-1] == kube.Collected:
		do(func(n *fakeNode) { n.Over = true })
		fake(os.RemoveAll(at))
	case args[0] == "sh":
		do(func(n *fakeNode) { n.Sent++ })
	case strings.HasPrefix(line, "/fleet/tare fleet pack"):
		do(func(n *fakeNode) { n.Cut-- })
		if n.Cut >= 0 {
			fmt.Print("cut")
			return 0
		}
		fake(Pack(os.Stdout, at, node))
	case strings.HasPrefix(line, "/fleet/tare fleet unpack"):
		fake(Unpack(os.Stdin, at, node))
	default:
		change(dir, func(c *fakeCluster) { c.Errors = append(c.Errors, line) })
		status = 1
	}
	return status
}

// A fleet whose nodes answer as nodes do at times: an archive comes cut off and is asked for again, a clock is wrong, one node has another fleet,
// one answers nothing. The rest goes on, and the next command brings what is left and removes everything.
func TestKubernetesRun(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv(fakeVariable, dir)
	nodes := []string{"n1", "n2", "n3", "n4", "n5"}
	change(dir, func(c *fakeCluster) {
		c.Nodes = map[string]*fakeNode{"n1": {Cut: 1}, "n2": {}, "n3": {Label: "tare-2"}, "n4": {Mute: true}, "n5": {Exit: 1}}
	})
	measured := func(at, node string) {
		t.Helper()
		if err := notebooktest.Night(1).Add("bm 1/1GB", 1).WriteTo(notebook.NodeResults(at, node)); err != nil {
			t.Fatal(err)
		}
		if err := notebook.WriteTask(at, node, notebook.FleetTask{State: notebook.TaskDone, Job: "pod-" + node}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes[:4] {
		measured(filepath.Join(dir, n), n)
	}
	f, at := &notebook.Fleet{ID: "tare-1", Study: "quick", Nodes: nodes}, filepath.Join(t.TempDir(), "F")
	if err := Make(at, f, nil); err != nil {
		t.Fatal(err)
	}
	measured(at, "n5") // an earlier task's results, which the node gets before it goes on
	var mu sync.Mutex
	told := map[string][]string{}
	k, err := OnKubernetes(f)
	if err != nil {
		t.Fatal(err)
	}
	run := func(nodes ...string) error {
		return k.Run(t.Context(), at, f, nodes, func(node string, step Step, said string) {
			mu.Lock()
			defer mu.Unlock()
			told[node] = append(told[node], fmt.Sprint(step, said))
		})
	}
	defer func(look, again, giveUp time.Duration) { lookEvery, againTime, giveUpTime = look, again, giveUp }(lookEvery, againTime, giveUpTime)
	lookEvery, againTime, giveUpTime = 10*time.Millisecond, 10*time.Millisecond, 0
	if err := run(nodes...); !errors.Is(err, errHeld) {
		t.Errorf("a node that answers nothing: %v", err)
	}
	if !strings.Contains(fmt.Sprint(told["n4"]), "unable to upgrade") || !strings.Contains(fmt.Sprint(told["n3"]), "already has a value") || len(told[""]) > 0 {
		t.Errorf("told: %v", told)
	}
	change(dir, func(c *fakeCluster) {
		if c.Job == 0 || !c.Space {
			t.Errorf("a node is still reserved, and its objects are gone: %+v", c)
		}
		c.Nodes["n4"].Mute = false
	})
	if err := run(); err != nil {
		t.Error(err)
	}
	change(dir, func(c *fakeCluster) {
		if c.Job != 0 || c.Space || len(c.Errors) > 0 {
			t.Errorf("at the end the cluster has %+v", c)
		}
		for name, n := range c.Nodes {
			switch {
			case name == "n3":
				if n.Label != "tare-2" || n.Tainted || n.Sent > 0 {
					t.Errorf("another fleet's node: %+v", n)
				}
			case n.Label != "" || n.Tainted || n.Sent == 0:
				t.Errorf("%s: %+v", name, n)
			}
		}
	})
	for _, s := range Statuses(at, f, map[string]Job{}) {
		if want := map[bool]State{true: Lost, false: Done}[s.Node == "n3"]; s.State != want || ((s.Ahead-time.Hour).Abs() < time.Minute) != (s.Node == "n2") {
			t.Errorf("%+v", s)
		}
	}
}
