//go:build linux

package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdi "tags.cncf.io/container-device-interface/specs-go"

	"tare/internal/require"
	"tare/lab/device"
	"tare/lab/engine"
	"tare/notebook"
)

// The guests' test device is the kernel's log: every kernel has it, no container has it by default, and the test only opens it. It
// has another name in the guest. Files come with it, one of them where the image has nothing, and a program of the host if the
// engine runs such programs.
const (
	hostDevice  = "/dev/kmsg"
	guestDevice = "/dev/harmless/device"
	givenPath   = "/etc/given"
	newPath     = "/opt/given/where/nothing/is"
	given       = "this came with the device"
	nameGiven   = "TARE_CONFORMANCE_DEVICE"

	createContainer = "createContainer" // the moment of hooks in today's descriptions
)

// describe writes the device's description, with a busybox hook of these words or without, and finds it.
func (r *suite) describe(t *testing.T, hook ...string) device.Edits {
	t.Helper()
	file := filepath.Join(t.TempDir(), "given")
	if err := os.WriteFile(file, []byte(given), 0o644); err != nil {
		t.Fatal(err)
	}
	edits := cdi.ContainerEdits{Mounts: []*cdi.Mount{mount(file, givenPath), mount(file, newPath)}}
	if hook != nil {
		edits.Hooks = []*cdi.Hook{{HookName: createContainer, Path: busybox(t), Args: append([]string{"busybox"}, hook...)}}
	}
	return r.described(t, edits)
}

func mount(host, path string) *cdi.Mount {
	return &cdi.Mount{HostPath: host, ContainerPath: path, Options: []string{"ro", "nosuid", "nodev", "bind"}}
}

// described describes the device, with these edits in addition to its file and an environment, and finds it.
func (r *suite) described(t *testing.T, edits cdi.ContainerEdits) device.Edits {
	t.Helper()
	_, err := os.Stat(hostDevice)
	require.That(t, err == nil, hostDevice)
	edits.DeviceNodes = []*cdi.DeviceNode{{Path: guestDevice, HostPath: hostDevice}}
	kind := fmt.Sprintf("tare.test/harmless-%08x", rand.Uint32()) // the host's folder may have others
	text, err := json.Marshal(cdi.Spec{
		Version: "0.5.0", Kind: kind, ContainerEdits: cdi.ContainerEdits{Env: []string{nameGiven + "=yes"}},
		Devices: []cdi.Device{{Name: "log", ContainerEdits: edits}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := r.s.Descriptions
	if dir == "" {
		dir = t.TempDir()
	}
	file := filepath.Join(dir, strings.ReplaceAll(kind, "/", "-")+".json")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(file, text, 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
	e, err := device.Find([]string{dir}, []string{kind + "=log"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// devices checks a guest with a device, and one without.
func (r *suite) devices(t *testing.T) {
	spec := r.spec(t, r.e.Provisionings[0], 1)
	if r.s.NoDevices != "" {
		spec.Devices = r.describe(t)
		r.cannot(t, "a device", spec)
		return
	}
	before := r.snapshot(t)
	spec.Devices = r.describe(t)
	r.hasDevice(t, before, spec)

	hooked := filepath.Join(t.TempDir(), "hooked")
	spec = r.spec(t, r.e.Provisionings[0], 1)
	// The hook reads its input: an engine that finds devices itself may fail if a hook does not.
	spec.Devices = r.describe(t, "sh", "-c", `cat > /dev/null; : > "$1"`, "sh", hooked)
	if r.s.RunsHooks {
		r.hasDevice(t, before, spec)
	} else {
		r.cannot(t, "a device with a program that has to run", spec)
	}
	if _, err := os.Stat(hooked); (err == nil) != r.s.RunsHooks {
		t.Errorf("the description's program ran: %v; that it runs such is declared: %v", err == nil, r.s.RunsHooks)
	}
	if r.s.RunsHooks {
		spec := r.spec(t, r.e.Provisionings[0], 1)
		spec.Devices = r.describe(t, "false")
		if err := r.attempt(t, spec, r.e.patience(20*time.Second)); err == nil {
			t.Error("a guest was made though the program of its device's description failed")
		}
	}
	if r.e.WritableRoot { // a container may make a device file, but the kernel lets it open only its own devices
		spec := r.spec(t, r.e.Provisionings[0], 1)
		g := r.provision(t, spec)
		r.refused(t, g, 1, 11)
		r.end(t, before, g, spec)
	}
}

// hasDevice makes a guest and checks that it has the device.
func (r *suite) hasDevice(t *testing.T, before snapshot, spec engine.Spec) {
	t.Helper()
	g := r.provision(t, spec)
	major, minor := spec.Devices.Nodes[0].Major, spec.Devices.Nodes[0].Minor
	if major != 1 || minor != 11 { // Linux, Documentation/admin-guide/devices.txt
		t.Errorf("%s was found to be %d:%d", hostDevice, major, minor)
	}
	if got, want := r.sh(t, g, "busybox stat -c '%F %t:%T' "+guestDevice), fmt.Sprintf("character special file %x:%x", major, minor); got != want {
		t.Errorf("%s is %q, want %q", guestDevice, got, want)
	}
	r.sh(t, g, ": > "+guestDevice) // opened without writing to it
	for _, path := range []string{givenPath, newPath} {
		if got := r.sh(t, g, "cat "+path); got != given {
			t.Errorf("%s is %q, want %q", path, got, given)
		}
		r.sh(t, g, "! (echo changed > "+path+") 2>/dev/null")
	}
	if !r.e.WritableRoot {
		r.sh(t, g, "! touch "+rootMark+" 2>/dev/null")
		if notes := g.Facts().Notes; !slices.ContainsFunc(notes, func(n *notebook.Message) bool { return n.Is("root-overlay") }) {
			t.Errorf("its record has %q, and not that its root is an overlay", notes)
		}
	}
	if got := spec.Devices.Env; len(got) != 1 || got[0] != nameGiven+"=yes" {
		t.Errorf("the environment that comes with it is %q", got)
	}
	r.end(t, before, g, spec)
	if _, err := os.Lstat(filepath.Join(r.image.Dir, newPath)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was made for the guest's device is in the store: %v", err)
	}
}

func (r *suite) refused(t *testing.T, g engine.Guest, major, minor uint32) {
	t.Helper()
	if got := r.sh(t, g, fmt.Sprintf("busybox mknod /dev/own c %d %d && (: > /dev/own) 2>&1 | busybox tail -n 1", major, minor)); got == "" {
		t.Errorf("a guest that was given no device opened %d:%d", major, minor)
	}
}
