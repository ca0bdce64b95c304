//go:build linux

package device

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/internal/require"
)

// describe writes descriptions, each a file of the folder that it gives.
func describe(t testing.TB, files map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{dir}
}

// one is a description of the device v.org/c=d with these edits.
func one(edits string) map[string]string {
	return map[string]string{"v.yaml": "cdiVersion: 0.8.0\nkind: v.org/c\ncontainerEdits: {env: [OF=all]}\ndevices:\n- name: d\n  containerEdits: " + edits + "\n- name: e\n  containerEdits: {env: [E=1]}\n"}
}

func TestFind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lib.so")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := describe(t, one(fmt.Sprintf(`{env: [D=1], additionalGids: [7], deviceNodes: [{path: /dev/null}, {path: /dev/own/zero, hostPath: /dev/zero, permissions: r, fileMode: 416, gid: 7}],
    mounts: [{hostPath: %s, containerPath: /lib/lib.so, options: [ro, bind]}], hooks: [{hookName: createContainer, path: /bin/true, args: [true, x]}]}`, file)))
	e, err := Find(dirs, []string{"v.org/c=d", "v.org/c=e"})
	if err != nil {
		t.Fatal(err)
	}
	if e.String() != "v.org/c=d,v.org/c=e" || e.None() || strings.Join(e.Env, " ") != "OF=all D=1 E=1" {
		t.Errorf("%s with the environment %q; want the common variable once, then each device's own", e, e.Env)
	}
	null := Node{Host: "/dev/null", Path: "/dev/null", Major: 1, Minor: 3, Access: "rwm", Mode: 0o666}
	zero := Node{Host: "/dev/zero", Path: "/dev/own/zero", Major: 1, Minor: 5, Access: "r", Mode: 0o640, GID: 7}
	if len(e.Nodes) == 2 { // as the host has it, by default
		e.Nodes[0].UID, e.Nodes[0].GID, e.Nodes[1].UID = 0, 0, 0
	}
	if !slices.Equal(e.Nodes, []Node{null, zero}) {
		t.Errorf("nodes %+v", e.Nodes)
	}
	if len(e.Mounts) != 1 || e.Mounts[0].Host != file || e.Mounts[0].Path != "/lib/lib.so" || !e.Mounts[0].ReadOnly {
		t.Errorf("mounts %+v", e.Mounts)
	}
	if len(e.Hooks) != 1 || e.Hooks[0].When != "createContainer" || e.Hooks[0].Path != "/bin/true" || len(e.Hooks[0].Args) != 2 {
		t.Errorf("hooks %+v", e.Hooks)
	}
	if e, err := Find(dirs, nil); err != nil || !e.None() {
		t.Errorf("no devices: %+v, %v", e, err)
	}
	names, broken := List(dirs)
	if !slices.Equal(names, []string{"v.org/c=d", "v.org/c=e"}) || broken != nil {
		t.Errorf("listed are %q, broken %v", names, broken)
	}
}

// Whatever is wrong is one line that says what, and where.
func TestWhatIsWrongWithADevice(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		ask   string
		want  []string
	}{
		"no name":             {nil, "gpu0", []string{`"gpu0"`, "VENDOR/CLASS=DEVICE"}},
		"nothing described":   {nil, "v.org/c=d", []string{"no device v.org/c=d", "no device is described in"}},
		"another described":   {one("{env: [A=1]}"), "v.org/c=f", []string{"no device v.org/c=f", "the described devices are v.org/c=d, v.org/c=e"}},
		"broken file":         {map[string]string{"bad.json": `{"cdiVersion": `}, "v.org/c=d", []string{"no device v.org/c=d", "bad.json"}},
		"node gone":           {one("{deviceNodes: [{path: /dev/no-such-device}]}"), "v.org/c=d", []string{"v.org/c=d", "/dev/no-such-device", "no such file"}},
		"node is a file":      {one("{deviceNodes: [{path: /dev/x, hostPath: /etc/passwd}]}"), "v.org/c=d", []string{"/etc/passwd", "not a device"}},
		"node outside":        {one("{deviceNodes: [{path: /dev/../etc/x, hostPath: /dev/null}]}"), "v.org/c=d", []string{"/dev/../etc/x", "below /dev"}},
		"other numbers":       {one("{deviceNodes: [{path: /dev/null, type: c, major: 9, minor: 9}]}"), "v.org/c=d", []string{"9:9", "1:3", "generate it again"}},
		"other type":          {one("{deviceNodes: [{path: /dev/null, type: b}]}"), "v.org/c=d", []string{"/dev/null", "type b"}},
		"mount gone":          {one("{mounts: [{hostPath: /no/such/library, containerPath: /lib/x}]}"), "v.org/c=d", []string{"/no/such/library"}},
		"mount of a type":     {one("{mounts: [{hostPath: tmpfs, containerPath: /x, type: tmpfs}]}"), "v.org/c=d", []string{`"tmpfs"`, "/x"}},
		"mount out of root":   {one("{mounts: [{hostPath: /etc, containerPath: /x/../../y}]}"), "v.org/c=d", []string{"/x/../../y"}},
		"cache classes":       {one("{intelRdt: {closID: a}}"), "v.org/c=d", []string{"intelRdt"}},
		"two descriptions":    {map[string]string{"a.yaml": one("{env: [A=1]}")["v.yaml"], "b.yaml": one("{env: [A=1]}")["v.yaml"]}, "v.org/c=d", []string{"no device v.org/c=d", "conflict"}},
		"unknown in the file": {one("{devices: [x]}"), "v.org/c=d", []string{"no device v.org/c=d", "v.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Find(describe(t, c.files), []string{c.ask})
			if err == nil {
				t.Fatalf("found %+v", e)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}

func TestMake(t *testing.T) {
	require.Root(t)
	dev := t.TempDir()
	if err := os.Symlink("/", filepath.Join(dev, "out")); err != nil {
		t.Fatal(err)
	}
	nodes := []Node{{Path: "/dev/own/zero", Major: 1, Minor: 5, Mode: 0o622, GID: 7}, {Path: "/dev/top", Major: 1, Minor: 3, Mode: 0o600}}
	if err := Make(dev, nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		var is unix.Stat_t
		if err := unix.Lstat(filepath.Join(dev, strings.TrimPrefix(n.Path, "/dev/")), &is); err != nil {
			t.Fatal(err)
		}
		if is.Mode != unix.S_IFCHR|uint32(n.Mode) || is.Rdev != unix.Mkdev(n.Major, n.Minor) || is.Gid != n.GID {
			t.Errorf("%s is %+v", n.Path, is)
		}
	}
	if err := Make(dev, []Node{{Path: "/dev/out/tmp/escaped", Major: 1, Minor: 3}}); err == nil || !strings.Contains(err.Error(), "/dev/out/tmp/escaped") {
		t.Errorf("through a link out of the folder: %v", err)
	}
}

// Whatever a description says, guests get files below /dev that are devices of the host, and files that the host has.
func FuzzDescription(f *testing.F) {
	f.Add([]byte(one("{env: [A=1], deviceNodes: [{path: /dev/null}], mounts: [{hostPath: /etc, containerPath: /x, options: [ro]}]}")["v.yaml"]))
	f.Add([]byte(`{"cdiVersion": "0.6.0", "kind": "v.org/c", "devices": [{"name": "d", "containerEdits": {"deviceNodes": [{"path": "/dev//x", "hostPath": "/dev/zero"}]}}]}`))
	f.Add([]byte("cdiVersion: 1.0.0\nkind: v.org/c\ndevices: [{name: d, containerEdits: {}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Find(describe(t, map[string]string{"v.yaml": string(text)}), []string{"v.org/c=d"})
		if err != nil {
			return
		}
		for _, n := range e.Nodes {
			if !strings.HasPrefix(n.Path, "/dev/") || strings.Contains(n.Path, "..") || n.Major == 0 && n.Minor == 0 {
				t.Errorf("node %+v", n)
			}
		}
		for _, m := range e.Mounts {
			if !filepath.IsAbs(m.Path) || strings.Contains(m.Path, "/../") {
				t.Errorf("mount %+v", m)
			}
		}
	})
}
