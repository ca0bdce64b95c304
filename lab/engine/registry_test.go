//go:build linux

package engine

import (
	"errors"
	"strings"
	"testing"

	"tare/lab/image"
	"tare/notebook"
)

var (
	container = Kind{Platform: notebook.CN, Name: "jar", Usual: true, Fractions: true, Capabilities: []string{"jar"},
		Provisionings: []string{notebook.Vanilla, notebook.Pinned}}
	machine = Kind{Platform: notebook.VM, Name: "box", Networks: []string{notebook.NetBridge, notebook.NetNone}, Capabilities: []string{"box", notebook.KVM, notebook.TCG},
		Accelerators: []string{notebook.KVM, notebook.TCG}, Provisionings: []string{notebook.Vanilla}}
	metal = Kind{Platform: notebook.BM}
)

func TestSupports(t *testing.T) {
	half := notebook.Treatment{Instance: notebook.Instance{Cores: 0.5}, Provisioning: notebook.Vanilla}
	pinned, host := half, half
	pinned.Provisioning = notebook.Pinned
	host.Instance.Cores, host.Network = 1, notebook.NetHost
	for _, c := range []struct {
		k    Kind
		t    notebook.Treatment
		want string // in the error; "" for none
	}{
		{container, half, ""}, {container, host, ""}, {container, pinned, "cn with jar cannot give 0.5 cores, pinned: "},
		{machine, half, "vm with box cannot give 0.5 cores: "}, {machine, host, "vm with box cannot give the network host: "},
		{metal, half, "bm cannot give 0.5 cores: "}, {metal, host, ""},
	} {
		err := c.k.Supports(c.t)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s, %+v: %v", c.k, c.t, err)
			}
			continue
		}
		if _, ok := errors.AsType[*UnsupportedError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %+v: %v, want an *UnsupportedError with %q", c.k, c.t, err, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Spec{Image: &image.Image{}, Instance: notebook.Instance{Cores: 2}, Provisioning: notebook.Pinned, CPUs: []int{1, 2}}
	vanilla, bare, half, few, none, other := good, good, good, good, good, good
	vanilla.Provisioning, vanilla.CPUs = notebook.Vanilla, nil
	bare.Image = nil
	half.Instance.Cores = 0.5
	few.CPUs = few.CPUs[:1]
	none.CPUs, none.Instance.Cores = nil, 0
	other.Provisioning = "other"
	for _, c := range []struct {
		k    Kind
		s    Spec
		want string // in the error; "" for none
	}{
		{container, good, ""}, {container, vanilla, ""}, {metal, good, ""}, {metal, vanilla, "names 0 CPUs"},
		{container, bare, "no image"}, {container, half, "cannot give 0.5 cores"}, {container, few, "names 1 CPUs; must be one for each"},
		{metal, none, "names 0 CPUs"}, {container, other, `provisioning "other": must be `}, {machine, good, `provisioning "pinned": must be vanilla`},
	} {
		err := c.k.Check(c.s)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %+v: %v, want %q", c.k, c.s, err, c.want)
		}
	}
}

func TestKind(t *testing.T) {
	if got := machine.Needs(notebook.Treatment{Accelerator: notebook.TCG}); got != notebook.TCG {
		t.Errorf("an emulated guest needs %q", got)
	}
	if container.Needs(notebook.Treatment{}) != "jar" || metal.Needs(notebook.Treatment{}) != "" {
		t.Error("a container needs its engine, and bare metal nothing")
	}
	saved := notebook.Treatment{Factors: map[string]string{notebook.FactorFrom.Name: notebook.FromSnapshot}}
	if saving := (Kind{Capabilities: []string{"jar", "jar restore"}, Saving: "jar restore"}); saving.Needs(saved) != "jar restore" || saving.Needs(notebook.Treatment{}) != "jar" {
		t.Error("what starts from a snapshot needs a host that can restore one, and nothing else does")
	}
	if !metal.Binds("") || container.Binds(notebook.Vanilla) || !container.Binds(notebook.Pinned) {
		t.Error("bare metal and what is pinned are bound to CPUs, and nothing else is")
	}
	if container.Connected("", false) != "" || container.Connected("", true) != notebook.NetBridge || container.Connected(notebook.IsolationFull, false) != notebook.NetBridge {
		t.Error("a container is on the bridge for its service, and as the ladder's full rung")
	}
}

func TestRegistry(t *testing.T) {
	r := Registry{metal, container, machine}
	if k, err := r.Find(notebook.CN, "jar"); err != nil || k.Name != "jar" {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := r.Find(notebook.CN, "box"); err == nil {
		t.Error("another platform's engine was found")
	}
	if r.Names("zz") != nil || len(r.Names(notebook.BM)) != 1 || len(r.Usual(notebook.CN)) != 1 || len(r.Usual(notebook.VM)) != 0 {
		t.Error("the names of the registered engines are wrong")
	}
	if _, ok := r.Undo()[KindFolder]; !ok {
		t.Error("what every engine journals cannot be undone")
	}
}

func TestDifferences(t *testing.T) {
	page := int64(4096)
	in := notebook.Limits{CPUs: "0-1", Quota: 2, Memory: 100 * page}
	for _, c := range []struct {
		want  notebook.Limits
		wrong int
	}{
		{notebook.Limits{CPUs: "0-1", Quota: 2, Memory: 100 * page}, 0}, {notebook.Limits{Quota: 2.0005, Memory: 100*page + 5}, 0},
		{notebook.Limits{CPUs: "0"}, 3}, {notebook.Limits{CPUs: "0-1", Quota: 2}, 1},
	} {
		if got := Differences(in, c.want); len(got) != c.wrong {
			t.Errorf("%+v: %q, want %d", c.want, got, c.wrong)
		}
	}
}
