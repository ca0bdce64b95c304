//go:build linux

package qemu

import (
	"os"
	"strings"
	"testing"

	"tare/lab/engine"
	"tare/notebook"
)

// GRUB passes on only words that it does not quote or escape.
func TestBootConfiguration(t *testing.T) {
	var b bootDisks
	if err := b.configure(t.TempDir(), "quiet  tare.init=eyJ_-x nokaslr "); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(b.config)
	if err != nil || len(text) != configSize || !strings.Contains(string(text), "\nlinux /vmlinuz quiet tare.init=eyJ_-x nokaslr\ninitrd /initramfs\n") {
		t.Errorf("%v, %d bytes: %.600q", err, len(text), text)
	}
	for _, line := range []string{"a;b", "$x", "'a'", `a="b"`, `a\\b`, "{", "é"} {
		if err := b.configure(t.TempDir(), line); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

// What cannot boot from its disk is refused with the reason.
func TestCannotBootFromDisk(t *testing.T) {
	m := notebook.Machine{BootDisk: true}
	d := New(VM, engine.Env{})
	for accelerator, path := range map[string]string{notebook.KVMEmulated: os.Getenv("PATH"), notebook.TCG: t.TempDir()} {
		t.Setenv("PATH", path)
		if err := d.boots(m, accelerator); err == nil || !strings.Contains(err.Error(), "boot=disk") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", accelerator, err)
		}
		if err := d.boots(notebook.UsualMachine, accelerator); err != nil {
			t.Errorf("%s, the usual machine: %v", accelerator, err)
		}
	}
	if part, why := microvm.lacks(m); part != "boot=disk" || why == "" {
		t.Errorf("a microVM lacks %q: %q", part, why)
	}
}
