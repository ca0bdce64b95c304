//go:build linux

package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/lab/device"
	"tare/notebook"
)

// The doctor names the devices that guests can have, and what is wrong with others.
func TestDevicesOfTheHost(t *testing.T) {
	dirs := device.Dirs
	t.Cleanup(func() { device.Dirs = dirs })
	device.Dirs = []string{t.TempDir()}
	if c := devices(); c.Answer != notebook.NotSupported || c.Do == "" || !strings.Contains(c.Why, device.Dirs[0]) {
		t.Errorf("none is described: %+v", c)
	}
	was := nvidiaDriver
	t.Cleanup(func() { nvidiaDriver = was })
	nvidiaDriver = filepath.Join(t.TempDir(), "version")
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\nGCC version:  gcc version 12.2.0\n":          "NVIDIA's driver 550.54.14 is loaded",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)  Sun Jul 27 07:11:14 UTC 2025\n": "NVIDIA's driver 580.65.06 is loaded",
		"something else 1.2.3\n": "",
	} {
		if err := os.WriteFile(nvidiaDriver, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := devices(); c.Answer != notebook.NotSupported || !strings.HasSuffix(c.Why, want) || strings.Contains(c.Do, "--output=/etc/cdi") != (want != "") {
			t.Errorf("%q: %+v", text, c)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(device.Dirs[0], name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("gone.yaml", "cdiVersion: 0.6.0\nkind: v.org/gone\ndevices: [{name: d, containerEdits: {deviceNodes: [{path: /dev/no-such-device}]}}]\n")
	if c := devices(); c.Answer != notebook.NotSupported || !strings.Contains(c.Why, "/dev/no-such-device") {
		t.Errorf("one is described that is not there: %+v", c)
	}
	write("v.yaml", "cdiVersion: 0.6.0\nkind: v.org/c\ndevices: [{name: d, containerEdits: {deviceNodes: [{path: /dev/null}]}}]\n")
	write("broken.json", "{")
	c := devices()
	if c.Answer != notebook.Supported {
		t.Errorf("one is there: %+v", c)
	}
	for _, want := range []string{"described are v.org/c=d;", "/dev/no-such-device", "broken.json"} {
		if !strings.Contains(c.Why, want) {
			t.Errorf("%q does not contain %q", c.Why, want)
		}
	}
}
