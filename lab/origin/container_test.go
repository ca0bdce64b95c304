package origin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// As Docker 20.10 describes a container, shortened.
const inspected = `{"Id":"ab","Name":"/web","Image":"sha256:11","Path":"/app",
"Config":{"Image":"web:1","Env":["PATH=/bin","A=1","UNSET"],"Entrypoint":["/app"],"Cmd":["serve"],"WorkingDir":"/srv","User":"app","ExposedPorts":{"80/tcp":{}}},
"HostConfig":{"NanoCpus":1500000000,"Memory":268435456,"CpusetCpus":"0","NetworkMode":"shop","PortBindings":{"80/tcp":[{"HostPort":"8080"}]},"ReadonlyRootfs":true,"IpcMode":"private","Runtime":"runc"},
"Mounts":[{"Type":"bind","Source":"/srv/conf","Destination":"/etc/web"},{"Type":"volume","Name":"data","Source":"/var/lib/docker/volumes/data/_data","Destination":"/data"},{"Type":"tmpfs","Destination":"/run"}]}`

func TestFromContainer(t *testing.T) {
	o, err := FromContainer([]byte(inspected), func(string) string { return "sha256:11" })
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%q", []any{o.Name, o.Image, o.Command, o.Env, o.Volumes, o.Dir, o.User, o.CPUSet, o.Left})
	want := fmt.Sprintf("%q", []any{"web", "docker-daemon:web:1", []string{"/app", "serve"}, []string{"PATH=/bin", "A=1"},
		[]Volume{{"/srv/conf", "/etc/web"}, {"/var/lib/docker/volumes/data/_data", "/data"}}, "/srv", "app", "0",
		[]string{"not taken over: mount /run: of type tmpfs", "not taken over: --read-only", "not taken over: network shop; other containers are not reached"}})
	if got != want || o.Cores != 1.5 || o.Memory != 256<<20 || !slices.Equal(o.Ports, []int{80}) {
		t.Errorf("got  %s %v %d %d\nwant %s", got, o.Cores, o.Memory, o.Ports, want)
	}
	// The name means another image by now.
	if o, err = FromContainer([]byte(inspected), func(string) string { return "sha256:22" }); err != nil || o.Image != "docker-daemon:sha256:11" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := FromContainer([]byte(`{"Config":[]}`), nil); err == nil || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

func FuzzContainer(f *testing.F) {
	f.Add([]byte(inspected))
	f.Add([]byte(`{"HostConfig":{"CpuQuota":50000,"PortBindings":{"x/udp":null,"0":[]}},"Config":{"Env":["=",""]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := FromContainer(text, func(string) string { return "" })
		if err != nil {
			return
		}
		for _, p := range o.Ports {
			if p < 1 || p > 65535 {
				t.Errorf("%q gives port %d", text, p)
			}
		}
	})
}
