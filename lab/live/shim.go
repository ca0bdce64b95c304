//go:build linux

package live

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// Annotations by which containerd's clients name a container in its OCI configuration.
const (
	criContainer = "io.kubernetes.cri.container-name"
	criPod       = "io.kubernetes.cri.sandbox-name"
	criNamespace = "io.kubernetes.cri.sandbox-namespace"
	nerdctlName  = "nerdctl/name"
)

// mostConfigured bounds a container's OCI configuration, in bytes.
const mostConfigured = 4 << 20

// nameByShims names the containers of containerd that no engine has named, and says of which pods they are. Each has a shim, whose working
// folder is among the folders with the containers' configurations, wherever containerd keeps its state.
func nameByShims(containers map[string]*Guest, pids []int) {
	folders := map[string]bool{}
	for _, pid := range pids {
		if !strings.HasPrefix(proc.Name(pid), "containerd-shim") {
			continue
		}
		if bundle, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil {
			folders[filepath.Dir(bundle)] = true
		}
	}
	for id, g := range containers {
		for folder := range folders {
			text, err := readBounded(filepath.Join(folder, id, "config.json"), mostConfigured)
			if err != nil {
				continue
			}
			name, pod, namespace := annotated(text)
			g.Pod, g.Namespace = pod, namespace
			if unnamed := strings.HasPrefix(id, g.Name); unnamed && name != "" {
				g.Name = name
			}
		}
	}
}

// annotated is what the annotations of a container's OCI configuration call it, and its pod. It ignores a text of another form.
func annotated(config []byte) (name, pod, namespace string) {
	var c struct{ Annotations map[string]string }
	if json.Unmarshal(config, &c) != nil {
		return "", "", ""
	}
	name = c.Annotations[criContainer]
	if name == "" {
		name = c.Annotations[nerdctlName]
	}
	return name, c.Annotations[criPod], c.Annotations[criNamespace]
}

// readBounded reads a regular file of at most that many bytes.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes (%v)", name, most, err)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
