//go:build linux

package conformance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdi "tags.cncf.io/container-device-interface/specs-go"

	"tare/internal/require"
)

// vendorHook is the vendor's program that descriptions of `nvidia-ctk cdi generate` run.
const vendorHook = "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-cdi-hook@v1.18.0"

// VendorHooks gives a guest a device with a description like NVIDIA's: with a library that has a version in its name and no
// counterpart in the image, and with the hooks that let the guest's loader find it.
func VendorHooks(t *testing.T, s Subject, provisioning string) {
	require.Root(t)
	require.Program(t, "gcc", "go", "/sbin/ldconfig")
	r := prepare(t, s, Expectations{Memory: memory}, NewLab(t))
	dir := t.TempDir()
	run := func(env []string, name string, args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		return cmd.CombinedOutput()
	}
	said, err := run([]string{"GOBIN=" + dir, "GOFLAGS=-buildvcs=false -trimpath", "CGO_ENABLED=1"}, "go", "install", vendorHook)
	require.That(t, err == nil, vendorHook+" by the Go module proxy: "+strings.TrimSpace(string(said)))
	const folder, library = "/usr/lib/x86_64-linux-gnu", "libtare-test.so"
	file, source := filepath.Join(dir, library+".1.2"), filepath.Join(dir, "library.c")
	if err := os.WriteFile(source, []byte("int tare_test(void) { return 1; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := run(nil, "gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,"+library+".1", "-o", file, source); err != nil {
		t.Fatalf("gcc: %v: %s", err, said)
	}
	hook := func(args ...string) *cdi.Hook {
		return &cdi.Hook{
			HookName: createContainer, Path: filepath.Join(dir, "nvidia-cdi-hook"), Args: append([]string{"nvidia-cdi-hook"}, args...),
			Env: []string{"NVIDIA_CTK_DEBUG=false"},
		}
	}
	before, spec := r.snapshot(t), r.spec(t, provisioning, 1)
	spec.Devices = r.described(t, cdi.ContainerEdits{
		Mounts: []*cdi.Mount{mount(file, folder+"/"+library+".1.2")},
		Hooks: []*cdi.Hook{
			hook("create-symlinks", "--link", library+".1::"+folder+"/"+library),
			hook("disable-device-node-modification"),
			hook("update-ldcache", "--folder", folder),
		},
	})
	g := r.provision(t, spec)
	for link, target := range map[string]string{library: library + ".1", library + ".1": library + ".1.2"} {
		if got := r.sh(t, g, "busybox readlink "+folder+"/"+link); got != target {
			t.Errorf("%s/%s is a link to %q, want %s", folder, link, got, target)
		}
	}
	r.sh(t, g, "grep -q "+folder+"/"+library+".1 /etc/ld.so.cache")
	r.end(t, before, g, spec)
}
