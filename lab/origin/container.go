package origin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// container is the part of Docker Engine's description of a container that Tare reads.
type container struct {
	Name   string
	Image  string // digest of its configuration
	Config struct {
		Image           string // name that it was made by
		Env             []string
		Entrypoint, Cmd []string
		WorkingDir      string
		User            string
		ExposedPorts    map[string]struct{}
	}
	HostConfig struct {
		NanoCpus, CpuQuota, CpuPeriod, CpuShares, Memory int64
		CpusetCpus, NetworkMode, PidMode, IpcMode        string
		Runtime                                          string
		Privileged, ReadonlyRootfs                       bool
		PortBindings                                     map[string]json.RawMessage
		CapAdd, CapDrop, SecurityOpt                     []string
		ExtraHosts, Links                                []string
		Tmpfs                                            map[string]string
		Devices, DeviceRequests, Ulimits                 []json.RawMessage
		Sysctls                                          map[string]string
	}
	Mounts []struct{ Type, Name, Source, Destination string }
}

// FromContainer reads Docker Engine's description of a container. digest returns the digest that an image's name has now.
func FromContainer(text []byte, digest func(image string) string) (*Origin, error) {
	var c container
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("the Docker Engine's description of the container does not have the format of Docker 20.10 and later: %w", err)
	}
	of, host := c.Config, c.HostConfig
	o := &Origin{
		Name: strings.TrimPrefix(c.Name, "/"), Image: "docker-daemon:" + of.Image,
		Command: slices.Concat(of.Entrypoint, of.Cmd), Dir: of.WorkingDir, User: of.User,
		Memory: host.Memory, CPUSet: host.CpusetCpus, Runtime: host.Runtime,
	}
	for _, kv := range of.Env {
		if strings.IndexByte(kv, '=') > 0 { // one without a value removes the image's variable, and sets nothing
			o.Env = append(o.Env, kv)
		}
	}
	if of.Image == "" || digest(of.Image) != c.Image {
		o.Image = "docker-daemon:" + c.Image // the name now belongs to another image
	}
	switch {
	case host.NanoCpus > 0:
		o.Cores = float64(host.NanoCpus) / 1e9
	case host.CpuQuota > 0:
		period := host.CpuPeriod
		if period == 0 {
			period = 100_000
		}
		o.Cores = float64(host.CpuQuota) / float64(period)
	}
	for _, m := range c.Mounts {
		switch m.Type {
		case "bind", "volume":
			o.Volumes = append(o.Volumes, Volume{m.Source, m.Destination})
		default:
			o.leave("mount", m.Destination, "of type "+m.Type)
		}
	}
	ports := slices.Concat(slices.Collect(maps.Keys(host.PortBindings)), slices.Collect(maps.Keys(of.ExposedPorts)))
	for _, p := range slices.Sorted(slices.Values(ports)) {
		o.addPort(p)
	}
	c.leave(o)
	return o, nil
}

// leave records what a container has and a guest does not get.
func (c *container) leave(o *Origin) {
	host := c.HostConfig
	for _, of := range []struct {
		has  bool
		what string
	}{
		{host.Privileged, "--privileged"},
		{host.ReadonlyRootfs, "--read-only"},
		{len(host.CapAdd)+len(host.CapDrop) > 0, "capabilities"},
		{len(host.SecurityOpt) > 0, "--security-opt"},
		{len(host.Devices)+len(host.DeviceRequests) > 0, "devices (see --device)"},
		{len(host.Tmpfs) > 0, "--tmpfs"},
		{len(host.Ulimits) > 0, "--ulimit"},
		{len(host.Sysctls) > 0, "--sysctl"},
		{len(host.ExtraHosts)+len(host.Links) > 0, "names of other hosts and containers"},
		{host.CpuShares > 0, "--cpu-shares"},
		{host.PidMode != "", "--pid " + host.PidMode},
		{host.IpcMode != "" && host.IpcMode != "private" && host.IpcMode != "shareable", "--ipc " + host.IpcMode},
		{host.Runtime != "" && host.Runtime != "runc", "--runtime " + host.Runtime + " (see --platforms)"},
	} {
		if of.has {
			o.Left = append(o.Left, "not taken over: "+of.what)
		}
	}
	switch mode := host.NetworkMode; mode {
	case "", "default", "bridge":
	case "host", "none":
		o.Left = append(o.Left, fmt.Sprintf("not taken over: network %s; add --network %[1]s", mode))
	default:
		o.Left = append(o.Left, fmt.Sprintf("not taken over: network %.60s; other containers are not reached", mode))
	}
}

// leave records that something is not taken over.
func (o *Origin) leave(what, name, why string) {
	o.Left = append(o.Left, fmt.Sprintf("not taken over: %s %.200s: %s", what, name, why))
}

// addPort adds the container's side of a port, "80" or "80/tcp".
func (o *Origin) addPort(text string) {
	number, protocol, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	switch {
	case protocol != "" && protocol != "tcp":
		o.leave("port", text, "loads use TCP")
	case err != nil || n < 1 || n > 65535:
		o.leave("port", text, "must be one number from 1 to 65535")
	case !slices.Contains(o.Ports, n):
		o.Ports = append(o.Ports, n)
	}
}
