//go:build linux

package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/cgroup"
)

// sleeper starts a program that runs until the test ends, with a child.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 60 & echo ready; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		target, err := findProcess(cmd.Process.Pid)
		if err == nil {
			pids, _ := target.Processes()
			for _, pid := range pids {
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill() // it may have ended
				}
			}
		}
		cancel()
		_ = cmd.Wait() // it was killed
	})
	line := make([]byte, 6)
	if _, err := out.Read(line); err != nil || string(line) != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

// A process is observed with its descendants, until it ends; another with its number is not it.
func TestFindAProcess(t *testing.T) {
	cmd := sleeper(t)
	target, err := Find(t.Context(), strconv.Itoa(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pids, err := target.Processes()
	if err != nil || len(pids) != 2 || pids[0] != cmd.Process.Pid || target.Kind != "process" || target.Name != fmt.Sprint("sh ", cmd.Process.Pid) {
		t.Errorf("%+v: processes %v, %v", target, pids, err)
	}
	other := *target
	other.start++
	if pids, err := other.Processes(); len(pids) > 0 || err != nil {
		t.Errorf("another process with the number: %v, %v", pids, err)
	}
}

// A cgroup is found by its path in each form, and a unit by its folder's name.
func TestFindAGroup(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root")
	hierarchies, err := cgroup.Mounted()
	if err != nil || len(hierarchies) == 0 {
		require.That(t, false, fmt.Sprintf("cgroups (%v)", err))
	}
	at := ""
	for _, h := range hierarchies {
		if h.V2 && at == "" || !h.V2 && h.Has("cpu") {
			at = h.At
		}
	}
	unit := fmt.Sprintf("tare-live-test-%d.service", os.Getpid())
	dir := filepath.Join(at, unit)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := cgroup.Remove(ctx, dir); err != nil {
			t.Error(err)
		}
	})
	if _, err := Find(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "has no running process") {
		t.Errorf("an empty group: %v", err)
	}
	cmd := sleeper(t)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{dir: "cgroup", "/" + unit: "cgroup", unit: "unit", strings.TrimSuffix(unit, ".service"): "unit"} {
		target, err := Find(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if pids, err := target.Processes(); err != nil || !reflect.DeepEqual(pids, []int{cmd.Process.Pid}) || target.Kind != kind || target.Dir != dir {
			t.Errorf("%s: %+v: %v, %v", name, target, pids, err)
		}
	}
}

func TestFindNothing(t *testing.T) {
	for name, want := range map[string]string{
		"no-such-thing":         `"no-such-thing": no running container, pod, VM or systemd unit has this name`,
		"4194304":               "process 4194304 does not exist",
		"/no/such/group":        "cgroup /no/such/group does not exist",
		"/":                     "is the whole host",
		"/sys/fs/cgroup/.":      "cgroup",
		fmt.Sprint(os.Getpid()): "is tare itself",
		"no/such-pod":           `"no/such-pod": no running`,
		"../../etc":             "no running container",
	} {
		if target, err := Find(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", name, target, err, want)
		}
	}
}

const cri = `{"ociVersion":"1.1.0","annotations":{"io.kubernetes.cri.container-name":"app","io.kubernetes.cri.sandbox-name":"web-5d4f8","io.kubernetes.cri.sandbox-namespace":"shop"}}`

func TestAnnotated(t *testing.T) {
	for text, want := range map[string][3]string{
		cri: {"app", "web-5d4f8", "shop"},
		`{"annotations":{"nerdctl/name":"cache"}}`: {"cache", "", ""},
		`{"annotations":null}`:                     {},
		`[`:                                        {},
	} {
		if name, pod, namespace := annotated([]byte(text)); [3]string{name, pod, namespace} != want {
			t.Errorf("%s: %s, %s, %s; want %v", text, name, pod, namespace, want)
		}
	}
}

func TestMonitored(t *testing.T) {
	for line, want := range map[string]string{
		"[lxc monitor] /var/lib/lxc web\x00": "web", "[lxc monitor] /a b/lxc db": "db", "/usr/bin/lxc-start\x00-F\x00-n\x00web": "web", "lxc-start\x00--name=db\x00": "db", "lxc-start\x00-n": "", "": "",
	} {
		if got := monitored(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func FuzzAnnotated(f *testing.F) {
	f.Add([]byte(cri))
	f.Fuzz(func(t *testing.T, text []byte) { annotated(text) })
}

const composedList = `[{"Id":"0a","Names":["/shop-web-1"],"Labels":{"com.docker.compose.service":"web","com.docker.compose.project.config_files":"/srv/shop/compose.yaml"}},
{"Id":"0b","Labels":{"com.docker.compose.service":"web","com.docker.compose.project.config_files":"/srv/shop/compose.yaml,/srv/shop/more.yaml"}},
{"Id":"0c","Labels":{"com.docker.compose.service":"db","com.docker.compose.project.config_files":"/srv/shop/compose.yaml"}},
{"Id":"0d","Labels":{"com.docker.compose.service":"web","com.docker.compose.project.config_files":"/srv/other/compose.yaml"}},{"Id":"0e"}]`

func TestComposed(t *testing.T) {
	for _, c := range []struct {
		file, service string
		ids, services []string
	}{
		{"/srv/shop/compose.yaml", "web", []string{"0a", "0b"}, []string{"db", "web"}},
		{"/srv/shop/compose.yaml", "db", []string{"0c"}, []string{"db", "web"}},
		{"/srv/shop/more.yaml", "cache", nil, []string{"web"}},
		{"/srv/nothing.yaml", "web", nil, nil},
	} {
		if ids, services := composed([]byte(composedList), c.file, c.service); !reflect.DeepEqual(ids, c.ids) || !reflect.DeepEqual(services, c.services) {
			t.Errorf("%s %s: %v, %v; want %v, %v", c.file, c.service, ids, services, c.ids, c.services)
		}
	}
}

func FuzzComposed(f *testing.F) {
	f.Add([]byte(composedList))
	f.Fuzz(func(t *testing.T, list []byte) { composed(list, "/srv/shop/compose.yaml", "web") })
}

func TestDescribe(t *testing.T) {
	id := strings.Repeat("0a", 32)
	guests := []Guest{{ID: id}}
	guests[0].Name = "web"
	for below, want := range map[string]string{
		"/docker/" + id: "web", "/docker/" + id + "/inner": "web", "/docker/" + strings.Repeat("f1", 32): "f1f1f1f1f1f1", "/lxc.payload.db": "db",
		"/system.slice/cron.service": "/system.slice/cron.service", "": "/",
	} {
		if got := Describe(guests, below); got != want {
			t.Errorf("%s: %q, want %q", below, got, want)
		}
	}
}
