//go:build linux

package live

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"tare/lab/memory"
	"tare/notebook"
)

func TestContainer(t *testing.T) {
	id, inner := strings.Repeat("0a", 32), strings.Repeat("f1", 32)
	for path, want := range map[string]string{
		"/docker/" + id:                                                        id,
		"/system.slice/docker-" + id + ".scope":                                id,
		"/machine.slice/libpod-" + id + ".scope/container":                     id,
		"/machine.slice/libpod-conmon-" + id + ".scope":                        "",
		"/kubepods.slice/kubepods-pod12.slice/cri-containerd-" + id + ".scope": id,
		"/docker/" + id + "/docker/" + inner:                                   inner,
		"/lxc.payload.web":                                                     "web",
		"/lxc/web/init.scope":                                                  "web",
		"/user.slice/user-0.slice":                                             "",
		"/":                                                                    "",
		"/docker/" + id[:63]:                                                   "",
	} {
		if got := container([]string{"/", path}); got != want {
			t.Errorf("%s: container %q, want %q", path, got, want)
		}
	}
}

func TestGuestName(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/qemu-system-x86_64 -m 1G -name guest=web,debug-threads=on": "web",
		"qemu-system-aarch64 -name web":                                      "web",
		"/usr/libexec/qemu-kvm -name web,process=x":                          "web",
		"qemu-system-x86_64 -name guest=a,,b":                                "a,b",
		"qemu-system-x86_64 -name":                                           "unnamed",
		"qemu-system-x86_64":                                                 "unnamed",
		"/usr/bin/qemu-img create x":                                         "",
		"":                                                                   "",
	} {
		if got, is := guestName(strings.Split(line, " "), "unnamed"); got != want || is != (want != "") {
			t.Errorf("%q: %q, %v, want %q", line, got, is, want)
		}
	}
}

func FuzzGuestName(f *testing.F) {
	f.Add("qemu-system-x86_64\x00-name\x00guest=a,,b,x")
	f.Fuzz(func(t *testing.T, cmdline string) {
		if name, is := guestName(strings.Split(cmdline, "\x00"), "unnamed"); is != (name != "") {
			t.Errorf("%q: %q, %v", cmdline, name, is)
		}
	})
}

func TestChoose(t *testing.T) {
	self := os.Getpid()
	web := Guest{Guest: memory.Guest{Name: "web", Kind: notebook.MemoryContainer, PIDs: []int{10, 11}}, ID: strings.Repeat("ab", 32)}
	db := Guest{Guest: memory.Guest{Name: "db", Kind: notebook.MemoryContainer, PIDs: []int{20}}, ID: strings.Repeat("ac", 32)}
	vm := Guest{Guest: memory.Guest{Name: "db", Kind: notebook.MemoryVM, PIDs: []int{30}}}
	guests, pids := []Guest{web, db, vm}, []int{10, 11, 20, 30, self}
	for arg, want := range map[string]memory.Guest{
		"web": web.Guest, "abab": web.Guest, web.ID: web.Guest, "30": vm.Guest,
		"10": {Kind: notebook.MemoryProcesses, PIDs: []int{10}},
	} {
		got, err := choose(guests, pids, arg)
		if err != nil || !reflect.DeepEqual(got.PIDs, want.PIDs) || got.Kind != want.Kind {
			t.Errorf("%s: %+v, %v; want %+v", arg, got, err, want)
		}
	}
	for args, want := range map[string]string{
		"db":       `"db" is ambiguous: db (container, process 20), db (vm, process 30); write the pid or the whole id of one`,
		"ap":       `no container or VM "ap" is running; running containers and VMs: web (container, process 10), db (container, process 20), db (vm, process 30)`,
		"77":       `77 is neither a process nor the name of a container or VM; running containers and VMs: web (container, process 10), db (container, process 20), db (vm, process 30)`,
		"web 11":   "process 11 is named twice: in web and in ",
		"web abab": "process 10 is named twice: in web and in web",
	} {
		if _, _, err := Choose(guests, pids, strings.Fields(args)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	chosen, others, err := Choose(guests, pids, []string{"11", "20"})
	if err != nil || len(chosen) != 2 || len(others) != 2 || !reflect.DeepEqual(others[0].PIDs, []int{10}) || !reflect.DeepEqual(web.PIDs, []int{10, 11}) {
		t.Errorf("chosen %+v, others %+v, %v", chosen, others, err)
	}
}
