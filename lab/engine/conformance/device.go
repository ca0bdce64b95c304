//go:build linux

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tare/internal/require"
	"tare/lab/device"
	"tare/lab/engine"
)

// The device that guests are given is one that every kernel has, that no container has by itself, and that is only opened: the kernel's log. It has
// another name in the guest, and with it come a file and, where the engine runs such, a program of the host's.
const (
	hostDevice  = "/dev/kmsg"
	guestDevice = "/dev/harmless/device"
	givenPath   = "/etc/given"
	given       = "this came with the device"
	nameGiven   = "TARE_CONFORMANCE_DEVICE"
)

// describe writes the device's description, with a hook or without, and finds it.
func (r *suite) describe(t *testing.T, hook bool) (e device.Edits, hooked string) {
	t.Helper()
	_, err := os.Stat(hostDevice)
	require.That(t, err == nil, hostDevice)
	dir := t.TempDir()
	file := filepath.Join(dir, "given")
	if err := os.WriteFile(file, []byte(given), 0o644); err != nil {
		t.Fatal(err)
	}
	hooked = filepath.Join(dir, "hooked")
	text := fmt.Sprintf(`{"cdiVersion": "0.6.0", "kind": "tare.test/harmless", "containerEdits": {"env": ["%s=yes"]}, "devices": [{"name": "log", "containerEdits": {
"deviceNodes": [{"path": %q, "hostPath": %q}], "mounts": [{"hostPath": %q, "containerPath": %q, "options": ["ro", "nosuid", "nodev", "bind"]}]`,
		nameGiven, guestDevice, hostDevice, file, givenPath)
	if hook {
		text += fmt.Sprintf(`, "hooks": [{"hookName": "createContainer", "path": %q, "args": ["busybox", "touch", %q]}]`, busybox(t), hooked)
	}
	if err := os.WriteFile(filepath.Join(dir, "harmless.json"), []byte(text+"}}]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if e, err = device.Find([]string{dir}, []string{"tare.test/harmless=log"}); err != nil {
		t.Fatal(err)
	}
	return e, hooked
}

// devices looks at what a guest has that was given a device, and at one that was not.
func (r *suite) devices(t *testing.T) {
	spec := r.spec(t, r.e.Provisionings[0], 1)
	if r.s.NoDevices != "" {
		spec.Devices, _ = r.describe(t, false)
		r.cannot(t, "a device", spec)
		return
	}
	before := r.snapshot(t)
	var hooked string
	spec.Devices, hooked = r.describe(t, r.s.RunsHooks)
	g := r.provision(t, spec)
	major, minor := spec.Devices.Nodes[0].Major, spec.Devices.Nodes[0].Minor
	if major != 1 || minor != 11 { // Linux, Documentation/admin-guide/devices.txt
		t.Errorf("%s was found to be %d:%d", hostDevice, major, minor)
	}
	if got, want := r.sh(t, g, "busybox stat -c '%F %t:%T' "+guestDevice), fmt.Sprintf("character special file %x:%x", major, minor); got != want {
		t.Errorf("%s is %q, want %q", guestDevice, got, want)
	}
	r.sh(t, g, ": > "+guestDevice) // opened, and nothing is written to it
	if got := r.sh(t, g, "cat "+givenPath); got != given {
		t.Errorf("%s is %q, want %q", givenPath, got, given)
	}
	r.sh(t, g, "! (echo changed > "+givenPath+") 2>/dev/null")
	if got := spec.Devices.Env; len(got) != 1 || got[0] != nameGiven+"=yes" {
		t.Errorf("the environment that comes with it is %q", got)
	}
	if _, err := os.Stat(hooked); (err == nil) != r.s.RunsHooks {
		t.Errorf("the description's program ran: %v; that it runs such is declared: %v", err == nil, r.s.RunsHooks)
	}
	r.end(t, before, g, spec)

	if !r.s.RunsHooks {
		spec := r.spec(t, r.e.Provisionings[0], 1)
		spec.Devices, _ = r.describe(t, true)
		r.cannot(t, "a device with a program that has to run", spec)
	}
	if r.e.WritableRoot { // a container: it may make a device file, and the kernel lets it open none that it was not given
		spec := r.spec(t, r.e.Provisionings[0], 1)
		g := r.provision(t, spec)
		r.refused(t, g, major, minor)
		r.end(t, before, g, spec)
	}
}

func (r *suite) refused(t *testing.T, g engine.Guest, major, minor uint32) {
	t.Helper()
	if got := r.sh(t, g, fmt.Sprintf("busybox mknod /dev/own c %d %d && (: > /dev/own) 2>&1 | busybox tail -n 1", major, minor)); got == "" {
		t.Errorf("a guest that was given no device opened %d:%d", major, minor)
	}
}
