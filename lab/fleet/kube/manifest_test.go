package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	kube "sigs.k8s.io/yaml"
)

func example() Objects {
	return Objects{Fleet: "tare-x1", Job: "tare-x1-1", Namespace: "tare-x1", OwnNamespace: true, Nodes: 3, Arch: "amd64", Image: "busybox:stable", Env: []Variable{{"TARE_X", "y"}}, Limit: time.Hour}
}

// decoded are the objects of YAML documents, decoded by the types of Kubernetes's API, which refuse a key that they do not have.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var kind struct{ Kind string }
		if err := kube.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		into := map[string]any{"Namespace": new(core.Namespace), "ServiceAccount": new(core.ServiceAccount), "Job": new(batch.Job), "Role": new(rbac.Role),
			"RoleBinding": new(rbac.RoleBinding), "ClusterRole": new(rbac.ClusterRole), "ClusterRoleBinding": new(rbac.ClusterRoleBinding)}[kind.Kind]
		if into == nil {
			t.Fatalf("an object of kind %q:\n%s", kind.Kind, document)
		}
		if err := kube.UnmarshalStrict([]byte(document), into); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
		all[kind.Kind] = into
	}
	return all
}

func TestObjectsAreTheAPIs(t *testing.T) {
	text, err := example().YAML()
	if err != nil {
		t.Fatal(err)
	}
	all := decoded(t, text)
	if len(all) != 3 {
		t.Errorf("%d objects, want a namespace, an account and a job", len(all))
	}
	job := all["Job"].(*batch.Job)
	if *job.Spec.Completions != 3 || *job.Spec.Parallelism != 3 || *job.Spec.CompletionMode != batch.IndexedCompletion || *job.Spec.ActiveDeadlineSeconds != 3600 {
		t.Errorf("the job is %+v", job.Spec)
	}
	pod := job.Spec.Template.Spec
	c := pod.Containers[0]
	if !pod.HostPID || !pod.HostNetwork || !*c.SecurityContext.Privileged || *pod.AutomountServiceAccountToken {
		t.Errorf("the pod is %+v", pod)
	}
	there := Folder("tare-x1")
	if want := []string{"tare", "on-node", there, Mount, there + "/tare", "fleet", "task", there, "$(NODE)", "$(POD)"}; !slices.Equal(c.Command[3:], want) {
		t.Errorf("the program's arguments are %q, want %q", c.Command[3:], want)
	}
	if r := pod.Containers[1]; c.Name != Measures || r.Name != Results || len(r.Env) != len(c.Env) || c.Env[1].Value != "y" || !*r.SecurityContext.Privileged || r.VolumeMounts[0].MountPath != Mount {
		t.Errorf("the containers are %+v", pod.Containers)
	}
	collect := example()
	collect.Collect = true
	if text, err = collect.YAML(); err != nil {
		t.Fatal(err)
	}
	pod = decoded(t, text)["Job"].(*batch.Job).Spec.Template.Spec
	if !slices.Equal(pod.Containers[0].Command, []string{"true"}) || !slices.Contains(pod.Tolerations, core.Toleration{Operator: core.TolerationOpExists}) {
		t.Errorf("a job that only collects has the pod %+v", pod)
	}
	existing := example()
	existing.OwnNamespace, existing.Tolerations = false, []Toleration{{Key: "gpu", Operator: "Exists"}}
	if text, err = existing.YAML(); err != nil {
		t.Fatal(err)
	}
	if all := decoded(t, text); len(all) != 2 || all["Namespace"] != nil || len(all["Job"].(*batch.Job).Spec.Template.Spec.Tolerations) != 2 {
		t.Errorf("in an existing namespace the objects are %v", all)
	}
}

func TestOperatorIsTheAPIs(t *testing.T) {
	text, err := Operator("tare", "operators")
	if err != nil {
		t.Fatal(err)
	}
	if all := decoded(t, text); len(all) != 4 {
		t.Errorf("%d objects, want two roles and two bindings", len(all))
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Objects){
		"name":       func(o *Objects) { o.Fleet = "Tare\n" },
		"namespace":  func(o *Objects) { o.Namespace = "a/b" },
		"image":      func(o *Objects) { o.Image = "busybox stable" },
		"variable":   func(o *Objects) { o.Env = []Variable{{"A=", ""}} },
		"toleration": func(o *Objects) { o.Tolerations = []Toleration{{Key: "a b"}} },
	} {
		o := example()
		change(&o)
		if text, err := o.YAML(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line that refuses it:\n%s", name, err, text)
		}
	}
}

// Whatever people name, the objects stay the same ones, with their words in the right places.
func FuzzValues(f *testing.F) {
	f.Add("a", "b")
	f.Add("'; rm -rf / #", "{{.}}")
	f.Add("\n---\nkind: Pod", "\"\\\x00")
	f.Fuzz(func(t *testing.T, arg, group string) {
		o := example()
		o.Env = []Variable{{"TARE_X", arg}}
		text, err := o.YAML()
		if err != nil {
			t.Fatal(err)
		}
		c := decoded(t, text)["Job"].(*batch.Job).Spec.Template.Spec.Containers[0]
		if got, want := c.Env[1].Value, strings.ToValidUTF8(arg, "\uFFFD"); got != want {
			t.Errorf("the value %q became %q", want, got)
		}
		if text, err = Operator("tare", group); err != nil {
			t.Fatal(err)
		}
		if got, want := decoded(t, text)["RoleBinding"].(*rbac.RoleBinding).Subjects[0].Name, strings.ToValidUTF8(group, "\uFFFD"); got != want {
			t.Errorf("the group %q became %q", want, got)
		}
	})
}
