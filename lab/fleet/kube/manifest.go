// Package kube has the Kubernetes objects of a fleet. They are plain manifests that people can read, and that kubectl applies.
package kube

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Label is the key of the label and of the taint with which a fleet marks the nodes that it has still to measure, and of the label of its objects.
// The value is the fleet's ID.
const Label = "tare-fleet"

// Objects describes the objects of a fleet: a namespace unless it exists already, a service account without rights, and a job with a pod for each
// node.
type Objects struct {
	Fleet        string // the fleet's ID
	Job          string // the job's name
	Namespace    string
	OwnNamespace bool          // the fleet makes the namespace
	Nodes        int           // how many nodes get a pod
	Arch         string        // of the nodes, in Go's words
	Image        string        // has sh and the usual programs, such as cat, gunzip and mkfifo
	Collect      bool          // measure nothing: bring back what is on the nodes, and remove it there
	Env          []Variable    // for Tare on the nodes
	Limit        time.Duration // ends the job however far it is
	Tolerations  []Toleration  // in addition to that of the fleet's own taint
}

// Variable is one of the environment.
type Variable struct{ Name, Value string }

// Toleration lets pods on nodes with a taint.
type Toleration struct {
	Key      string
	Operator string // Exists or Equal
	Value    string
	Effect   string
}

const (
	// Mount is where pods see the fleet's folder of their node.
	Mount = "/fleet"
	// Ready is the file in the fleet's folder that says that the program and the study are there.
	Ready = "ready"
	// Collected is the named pipe in the container Results from which a line says that the results have left the node.
	Collected = "/collected"
	// Measures and Results are the containers of a pod.
	Measures, Results = "tare", "results"
	// Folders has the folders of fleets on a node.
	Folders = "/var/lib/tare-fleet"
	// Grace is the time that a pod gets to end its guests and put the node in order, in seconds.
	Grace = 120
	// replaced is how often the pod for a node may fail for other reasons than the study, such as a lost node.
	replaced = 100
)

// Folder is the folder of a fleet on each node.
func Folder(fleet string) string { return Folders + "/" + fleet }

var (
	//go:embed job.yaml
	jobText string
	//go:embed operator.yaml
	operatorText string

	texts         = template.FuncMap{"text": quoted}
	jobYAML       = template.Must(template.New("job").Funcs(texts).Parse(jobText))
	operatorYAML  = template.Must(template.New("operator").Funcs(texts).Parse(operatorText))
	objectName    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	imageName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}$`)
	anyWhitespace = regexp.MustCompile(`\s`)
	variableName  = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
)

// quoted is a text as YAML has it, in quotation marks and only of ASCII characters: Go's escapes are among YAML's.
func quoted(text string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(text, "\uFFFD")) }

// YAML returns the objects as YAML documents. An error says which value Kubernetes would refuse.
func (o Objects) YAML() (string, error) {
	for _, name := range []string{o.Fleet, o.Job, o.Namespace} {
		if !objectName.MatchString(name) {
			return "", fmt.Errorf("%q is not a name for an object of Kubernetes: at most 63 lower-case letters, digits and hyphens are allowed", name)
		}
	}
	if !imageName.MatchString(o.Image) {
		return "", fmt.Errorf("%q is not the name of an image, such as busybox:stable or registry.example/tools/busybox:1.37", o.Image)
	}
	for _, t := range o.Tolerations {
		if anyWhitespace.MatchString(t.Key + t.Operator + t.Value + t.Effect) {
			return "", fmt.Errorf("the toleration %+v has white space", t)
		}
	}
	for _, v := range o.Env {
		if !variableName.MatchString(v.Name) {
			return "", fmt.Errorf("%q is not the name of a variable", v.Name)
		}
	}
	at := Folder(o.Fleet)
	return fill(jobYAML, struct {
		Objects
		Seconds, Grace, Replaced                        int
		Mount, Ready, Collected, Folder, Program, State string
	}{o, int(o.Limit.Seconds()), Grace, replaced, Mount, Ready, Collected, at, at + "/tare", at + "/state"})
}

// Operator returns the roles and bindings, as YAML documents, that let a group of users run fleets in a namespace.
func Operator(namespace, group string) (string, error) {
	if !objectName.MatchString(namespace) {
		return "", fmt.Errorf("%q is not the name of a namespace: at most 63 lower-case letters, digits and hyphens are allowed", namespace)
	}
	return fill(operatorYAML, struct{ Namespace, Group string }{namespace, group})
}

func fill(t *template.Template, with any) (string, error) {
	var b strings.Builder
	err := t.Execute(&b, with)
	return b.String(), err
}
