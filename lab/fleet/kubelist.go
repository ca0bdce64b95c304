//go:build linux

package fleet

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/lab/fleet/kube"
)

// kubeList is what kubectl prints of nodes, jobs, pods and events with --output=json.
type kubeList struct {
	Items []kubeObject `json:"items"`
}

// kubeObject is a node, a job, a pod or an event.
type kubeObject struct {
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Involved struct {
		Name string `json:"name"`
	} `json:"involvedObject"`
	Metadata struct {
		Name     string            `json:"name"`
		Labels   map[string]string `json:"labels"`
		Deletion *string           `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName      string      `json:"nodeName"`
		Unschedulable bool        `json:"unschedulable"`
		Taints        []kubeTaint `json:"taints"`
		Completions   int         `json:"completions"`
	} `json:"spec"`
	Status struct {
		Phase      string          `json:"phase"`
		Succeeded  int             `json:"succeeded"`
		Conditions []kubeCondition `json:"conditions"`
		Containers []kubeContainer `json:"containerStatuses"`
		Info       struct {
			Architecture string `json:"architecture"`
			System       string `json:"operatingSystem"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

type kubeTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

type kubeCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Since   string `json:"lastTransitionTime"`
}

type kubeContainer struct {
	Name  string `json:"name"`
	State struct {
		Waiting *struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"waiting"`
		Running    *struct{} `json:"running"`
		Terminated *struct {
			Exit int `json:"exitCode"`
		} `json:"terminated"`
	} `json:"state"`
}

// kubeNode is a node of a cluster.
type kubeNode struct {
	Node
	label   string // the value of kube.Label
	tainted bool   // with a taint of Tare's
	ready   bool
	since   time.Time // of ready; zero: not known
	against string    // why no pod of the fleet can come now; empty: one can
}

// kubePod is a pod of a fleet.
type kubePod struct {
	name, node string
	over       bool // it has ended or is about to be replaced
	left       bool // it has removed the fleet's folder
	deleting   bool
	results    bool // results can be brought back
	begun      bool // its task has begun
	ended      bool // its task has ended
	exit       int  // with this status
	why        string
}

// kubeJob is a job of a fleet.
type kubeJob struct {
	name string
	left int    // pods that have still to succeed
	over string // why the job has ended; empty: it goes on
}

// objectName is a name that the API gives; nothing else reaches a command line.
var objectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// condition is the object's condition of a type; zero: it has none.
func (o kubeObject) condition(of string) kubeCondition {
	for _, c := range o.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return kubeCondition{}
}

// parseObjects reads what kubectl prints. Objects with names that the API does not allow are left out.
func parseObjects(text string) ([]kubeObject, error) {
	var list kubeList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("kubectl printed something else than a list of objects: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(o kubeObject) bool {
		return !objectName.MatchString(o.Metadata.Name) || o.Spec.NodeName != "" && !objectName.MatchString(o.Spec.NodeName)
	}), nil
}

// node is a node as a fleet sees it whose pods tolerate some taints.
func (o kubeObject) node(tolerated []kube.Toleration) kubeNode {
	n := kubeNode{Node: Node{Name: o.Metadata.Name, Arch: o.Status.Info.Architecture}, label: o.Metadata.Labels[kube.Label]}
	if is, known := unames[n.Arch]; known {
		n.Arch = is
	}
	ready := o.condition("Ready")
	n.ready = ready.Status == "True"
	n.since, _ = time.Parse(time.RFC3339, ready.Since) // zero if it is something else
	var against string
	for _, t := range o.Spec.Taints {
		if t.Key == kube.Label {
			n.tainted = true
			continue
		}
		own := strings.HasPrefix(t.Key, "node.kubernetes.io/") && (o.Spec.Unschedulable || !n.ready) // the cluster's words for what is said below
		if t.Effect == "PreferNoSchedule" || own || slices.ContainsFunc(tolerated, t.is) {
			continue
		}
		against = t.String()
	}
	switch system := o.Status.Info.System; {
	case system != "" && system != "linux":
		n.Why = "its operating system is " + system
	case n.label != "":
		n.Why = "the fleet " + n.label + " measures on it"
	case !n.ready:
		n.Why = strings.TrimSuffix("it is not ready: "+ready.Message, ": ")
	case o.Spec.Unschedulable:
		n.Why = "it is cordoned"
	case against != "":
		n.Why = fmt.Sprintf("it has the taint %s; --toleration %[1]s allows it", against)
	}
	switch {
	case !n.ready:
		n.against = strings.TrimSuffix("the node is not ready: "+ready.Message, ": ")
	case o.Spec.Unschedulable:
		n.against = "the node is cordoned"
	}
	return n
}

// String is the taint as kubectl writes it.
func (t kubeTaint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// is says whether a toleration is for the taint.
func (t kubeTaint) is(by kube.Toleration) bool {
	return by.Key == t.Key && (by.Operator == "Exists" || by.Value == t.Value) && (by.Effect == "" || by.Effect == t.Effect)
}

// pod is a pod as a fleet sees it.
func (o kubeObject) pod() kubePod {
	p := kubePod{name: o.Metadata.Name, node: o.Spec.NodeName, deleting: o.Metadata.Deletion != nil}
	p.over = o.Status.Phase == "Succeeded" || o.Status.Phase == "Failed"
	if c := o.condition("PodScheduled"); c.Status == "False" {
		p.why = c.Message
	}
	for _, c := range o.Status.Containers {
		if w := c.State.Waiting; w != nil && p.why == "" && w.Reason != "ContainerCreating" {
			p.why = strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
		switch c.Name {
		case kube.Results:
			p.results = c.State.Running != nil && !p.over
			e := c.State.Terminated
			p.left = e != nil && e.Exit == 0
		case kube.Measures:
			p.begun = c.State.Waiting == nil
			if e := c.State.Terminated; e != nil {
				p.ended, p.exit = true, e.Exit
			}
		}
	}
	return p
}

// job is a job as a fleet sees it.
func (o kubeObject) job() kubeJob {
	j := kubeJob{name: o.Metadata.Name, left: max(0, o.Spec.Completions-o.Status.Succeeded)}
	for _, of := range []string{"Complete", "Failed"} {
		if c := o.condition(of); c.Status == "True" {
			j.left, j.over = 0, strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
		}
	}
	if o.Metadata.Deletion != nil {
		j.left, j.over = 0, "it was deleted"
	}
	return j
}
