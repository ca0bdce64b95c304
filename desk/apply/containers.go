package apply

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/notebook"
)

// docker writes a command line for a POSIX shell. Every word of it is a number, a CPU list, or an image's name, of
// which none needs quotes.
func docker(s *setting) (string, error) {
	return s.commented("docker run " + strings.Join(dockerFlags(s), " ") + " " + s.image + "\n"), nil
}

func dockerFlags(s *setting) []string {
	var flags []string
	if s.cpus != nil {
		flags = append(flags, "--cpuset-cpus="+notebook.FormatCPUList(s.cpus))
	} else {
		flags = append(flags, "--cpus="+s.cores())
	}
	if m := s.t.Instance.Memory; m > 0 {
		limit := dockerSize(m)
		flags = append(flags, "--memory="+limit, "--memory-swap="+limit, "--shm-size="+dockerSize(shm(m)))
	}
	if s.t.Network != "" {
		flags = append(flags, "--network="+s.t.Network)
	}
	if s.publishes() {
		flags = append(flags, "-p "+s.published())
	}
	return flags
}

// dockerSize writes bytes as Docker reads them.
func dockerSize(n int64) string { return size(n, "k", "m", "g") }

func toYAML(documents ...any) (string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, d := range documents {
		if err := e.Encode(d); err != nil {
			return "", err
		}
	}
	if err := e.Close(); err != nil {
		return "", err
	}
	return b.String(), nil
}

// compose writes a file with the one service.
func compose(s *setting) (string, error) {
	type service struct {
		Image   string   `yaml:"image"`
		CPUs    string   `yaml:"cpus,omitempty"`
		CPUSet  string   `yaml:"cpuset,omitempty"`
		Memory  string   `yaml:"mem_limit,omitempty"`
		Swap    string   `yaml:"memswap_limit,omitempty"`
		Shm     string   `yaml:"shm_size,omitempty"`
		Network string   `yaml:"network_mode,omitempty"`
		Ports   []string `yaml:"ports,omitempty"`
	}
	v := service{Image: s.image, CPUSet: notebook.FormatCPUList(s.cpus), Network: s.t.Network}
	if s.cpus == nil {
		v.CPUs = s.cores()
	}
	if m := s.t.Instance.Memory; m > 0 {
		v.Memory = dockerSize(m)
		v.Swap, v.Shm = v.Memory, dockerSize(shm(m))
	}
	if s.publishes() {
		v.Ports = []string{s.published()}
	}
	text, err := toYAML(map[string]any{"services": map[string]service{s.name: v}})
	return s.commented(text), err
}

// kubernetes writes a pod of the class Guaranteed, and for pinned CPUs the kubelet's configuration that gives whole
// CPUs to such pods alone.
func kubernetes(s *setting) (string, error) {
	type (
		meta struct {
			Name string `yaml:"name"`
		}
		mount struct {
			Name string `yaml:"name"`
			Path string `yaml:"mountPath"`
		}
		port struct {
			Container int `yaml:"containerPort"`
		}
		container struct {
			Name      string                       `yaml:"name"`
			Image     string                       `yaml:"image"`
			Ports     []port                       `yaml:"ports,omitempty"`
			Resources map[string]map[string]string `yaml:"resources"`
			Mounts    []mount                      `yaml:"volumeMounts,omitempty"`
		}
		emptyDir struct {
			Medium string `yaml:"medium"`
			Limit  string `yaml:"sizeLimit"`
		}
		volume struct {
			Name     string   `yaml:"name"`
			EmptyDir emptyDir `yaml:"emptyDir"`
		}
		spec struct {
			HostNetwork bool        `yaml:"hostNetwork,omitempty"`
			Containers  []container `yaml:"containers"`
			Volumes     []volume    `yaml:"volumes,omitempty"`
		}
		pod struct {
			Version  string `yaml:"apiVersion"`
			Kind     string `yaml:"kind"`
			Metadata meta   `yaml:"metadata"`
			Spec     spec   `yaml:"spec"`
		}
		kubelet struct {
			Version  string `yaml:"apiVersion"`
			Kind     string `yaml:"kind"`
			Policy   string `yaml:"cpuManagerPolicy"`
			Reserved string `yaml:"reservedSystemCPUs"`
		}
	)
	cores := s.cores()
	if !wholeCores(s.t.Instance.Cores) {
		cores = strconv.FormatInt(int64(math.Round(s.t.Instance.Cores*1000)), 10) + "m"
	}
	resources := map[string]string{"cpu": cores}
	c := container{Name: s.name, Image: s.image, Resources: map[string]map[string]string{"limits": resources, "requests": resources}}
	if s.port > 0 {
		c.Ports = []port{{s.port}}
	}
	p := pod{Version: "v1", Kind: "Pod", Metadata: meta{s.name}, Spec: spec{HostNetwork: s.t.Network == notebook.NetHost}}
	if m := s.t.Instance.Memory; m > 0 {
		resources["memory"] = size(m, "Ki", "Mi", "Gi")
		c.Mounts = []mount{{"shm", "/dev/shm"}}
		p.Spec.Volumes = []volume{{"shm", emptyDir{"Memory", size(shm(m), "Ki", "Mi", "Gi")}}}
	}
	p.Spec.Containers = []container{c}
	if s.cpus == nil {
		s.comments = append(s.comments, "On a node with the kubelet's CPU policy none, its default, the CPUs are a quota, as measured; the static policy would pin whole ones.")
		text, err := toYAML(p)
		return s.commented(text), err
	}
	s.comments = append(s.comments,
		"The pod asks for whole CPUs and for as much as it is limited to: it is Guaranteed, and the static policy gives it CPUs of its own.",
		"The second document goes into the node's kubelet configuration. To change the policy: drain the node, stop the kubelet,",
		"remove /var/lib/kubelet/cpu_manager_state, start it again. The kubelet chooses the CPUs from all but reservedSystemCPUs, which",
		"must be one at least.")
	k := kubelet{"kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", "static", "0"}
	if len(s.others) > 0 {
		k.Reserved = strconv.Itoa(s.others[0])
	} else {
		s.comments = append(s.comments, "On the host measured every CPU was the guest's: take a node with more.")
	}
	text, err := toYAML(p, k)
	return s.commented(text), err
}
