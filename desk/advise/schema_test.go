package advise

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kube "sigs.k8s.io/yaml"

	"tare/desk/data"
	"tare/internal/require"
	"tare/notebook"
)

// need skips a test if a component is missing, or fails it where all are required.
func need(t *testing.T, ok bool, what string) {
	t.Helper()
	require.That(t, ok, what)
}

func program(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	need(t, err == nil, fmt.Sprintf("%s (apt-get install %s)", name, pkg))
	return path
}

// run runs a program and gives what it printed; it fails the test where the program fails.
func run(t *testing.T, stdin io.Reader, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Stdin = stdin
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %q: %v: %s%s", name, args, err, out, stderr.Bytes())
	}
	return string(out) + stderr.String()
}

// everything is a study with one of each kind that can be applied.
func everything(t *testing.T) *Advice {
	l := usual().add("cn/docker/vanilla", half, 17).add("cn/docker/pinned", one, 9).add("vmcn/crun/kvm/vanilla", one, 19).add("vm/qemu/kvm/pinned", one, 17)
	l.study.Ports = map[string]int{"ffmpeg": 22} // 22:22 is a number to some readers of YAML
	for i, n := range []string{notebook.NetHost, notebook.NetBridge, notebook.NetNone} {
		for j, kind := range []notebook.Treatment{
			{Platform: "cn", Engine: "docker", Provisioning: "vanilla"}, {Platform: "vm", Engine: "qemu", Accelerator: "kvm", Provisioning: "pinned"},
			{Platform: "vmcn", Engine: "crun", Accelerator: "kvm", Provisioning: "vanilla"},
		} {
			kind.ID, kind.Workload, kind.Instance, kind.Network = fmt.Sprint(n, j), "ffmpeg", large, n
			if kind.Platform != notebook.CN {
				kind.Machine = []string{"huge-pages=2M", "cache=none cpu=qemu64 threads=2 no-vhost ram=file", "huge-pages=2M sockets=2 nodes=2"}[i]
			}
			if kind.Provisioning == notebook.Pinned {
				l.cpus[kind.ID] = "3,6"
			}
			l.treatment(kind, 20+float64(i))
		}
	}
	return read(t, Options{}, l.write(t))
}

// each gives every configuration of a format that there is.
func each(t *testing.T, a *Advice, format string, check func(t *testing.T, c Choice, text string)) {
	t.Helper()
	n := 0
	for _, c := range a.Rankings[0].Choices {
		if Expresses(format, c.Treatment) {
			n++
			t.Run(c.named(), func(t *testing.T) { check(t, c, apply(t, a, format, c.Rank)) })
		}
	}
	if n < 3 {
		t.Errorf("only %d were checked", n)
	}
}

func composeProject(t *testing.T, text string) *types.Project {
	t.Helper()
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: "/", ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}}, Environment: types.Mapping{},
	}, func(o *loader.Options) { o.SetProjectName("advice", true) })
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

func TestComposeAccepts(t *testing.T) {
	each(t, everything(t), "compose", func(t *testing.T, c Choice, text string) {
		s, err := composeProject(t, text).GetService("ffmpeg")
		if err != nil {
			t.Fatal(err)
		}
		cpus, set := float32(c.Treatment.Instance.Cores), ""
		if c.Treatment.Provisioning == notebook.Pinned {
			cpus, set = 0, notebook.FormatCPUList(c.CPUs)
		}
		if m := types.UnitBytes(c.Treatment.Instance.Memory); s.CPUS != cpus || s.CPUSet != set || s.MemLimit != m || s.MemSwapLimit != m || s.ShmSize != m/2 || s.NetworkMode != c.Treatment.Network || s.Image != Placeholder {
			t.Errorf("%+v", s)
		}
		ports := 1
		if n := c.Treatment.Network; n == notebook.NetHost || n == notebook.NetNone {
			ports = 0
		}
		if len(s.Ports) != ports || ports == 1 && (s.Ports[0].Target != 22 || s.Ports[0].Published != "22") || strings.Contains(text, " 22:22") {
			t.Errorf("%+v in\n%s", s.Ports, text)
		}
	})
}

// kubeDocuments decodes strictly: an unknown or doubled field is an error.
func kubeDocuments(t *testing.T, text string) (pod corev1.Pod, kubelet *kubeletv1beta1.KubeletConfiguration) {
	t.Helper()
	documents := strings.Split(text, "\n---\n")
	if err := kube.UnmarshalStrict([]byte(documents[0]), &pod); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(documents) > 1 {
		kubelet = &kubeletv1beta1.KubeletConfiguration{}
		if err := kube.UnmarshalStrict([]byte(documents[1]), kubelet); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	if len(documents) > 2 || pod.Kind != "Pod" || pod.APIVersion != "v1" || len(pod.Spec.Containers) != 1 {
		t.Fatalf("no pod of one container: %s", text)
	}
	// The class Guaranteed: CPU and memory are limited, and as much is asked for.
	r := pod.Spec.Containers[0].Resources
	for _, n := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, asked := r.Limits[n], r.Requests[n]
		if limit.IsZero() || limit.Cmp(asked) != 0 {
			t.Errorf("%s: limit %s, request %s: the pod is not Guaranteed", n, limit.String(), asked.String())
		}
	}
	return pod, kubelet
}

func TestKubernetesAccepts(t *testing.T) {
	each(t, everything(t), "kubernetes", func(t *testing.T, c Choice, text string) {
		pod, kubelet := kubeDocuments(t, text)
		r := pod.Spec.Containers[0].Resources
		if got, want := r.Limits.Cpu().MilliValue(), int64(1000*c.Treatment.Instance.Cores); got != want {
			t.Errorf("%d thousandths of a core, want %d", got, want)
		}
		if r.Limits.Memory().Value() != c.Treatment.Instance.Memory || pod.Spec.HostNetwork != (c.Treatment.Network == notebook.NetHost) {
			t.Errorf("%+v", pod.Spec)
		}
		if p := pod.Spec.Containers[0].Ports; len(p) != 1 || p[0].ContainerPort != 22 {
			t.Errorf("%+v", p)
		}
		if c.Treatment.Provisioning != notebook.Pinned {
			if kubelet != nil {
				t.Error("a kubelet's configuration for what is not pinned")
			}
			return
		}
		if r.Limits.Cpu().MilliValue()%1000 != 0 || kubelet == nil || kubelet.CPUManagerPolicy != "static" || kubelet.Kind != "KubeletConfiguration" {
			t.Fatalf("%+v", kubelet)
		}
		// Without a CPU of the system's own the kubelet does not start with that policy.
		if cpus, err := notebook.ParseCPUList(kubelet.ReservedSystemCPUs); err != nil || len(cpus) != 1 {
			t.Errorf("reserved: %q", kubelet.ReservedSystemCPUs)
		}
	})
}

func TestLibvirtAccepts(t *testing.T) {
	xmllint := program(t, "xmllint", "libxml2-utils")
	const schema = "/usr/share/libvirt/schemas/domain.rng"
	_, err := os.Stat(schema)
	need(t, err == nil, "libvirt's schemas (apt-get install libvirt0)")
	each(t, everything(t), "libvirt", func(t *testing.T, c Choice, text string) {
		run(t, strings.NewReader(text), xmllint, "--noout", "--nonet", "--relaxng", schema, "-")
		var d struct {
			Memory int64 `xml:"memory"`
			VCPU   int   `xml:"vcpu"`
			Pins   []struct {
				VCPU   int    `xml:"vcpu,attr"`
				CPUSet string `xml:"cpuset,attr"`
			} `xml:"cputune>vcpupin"`
			NICs  []struct{} `xml:"devices>interface"`
			Disks []struct {
				Cache string `xml:"cache,attr"`
			} `xml:"devices>disk>driver"`
			Pages struct {
				Size int64 `xml:"size,attr"`
			} `xml:"memoryBacking>hugepages>page"`
			Model    string `xml:"cpu>model"`
			Topology struct {
				Sockets int `xml:"sockets,attr"`
				Cores   int `xml:"cores,attr"`
				Threads int `xml:"threads,attr"`
			} `xml:"cpu>topology"`
			Nodes []struct {
				CPUs   string `xml:"cpus,attr"`
				Memory int64  `xml:"memory,attr"`
			} `xml:"cpu>numa>cell"`
		}
		if err := xml.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		n := int(c.Treatment.Instance.Cores)
		if d.Memory<<10 != c.Treatment.Instance.Memory || d.VCPU != n || (len(d.NICs) == 0) != (c.Treatment.Network == notebook.NetNone) {
			t.Errorf("%+v", d)
		}
		m, err := notebook.ParseMachine(c.Treatment.Machine)
		if err != nil {
			t.Fatal(err)
		}
		for _, disk := range d.Disks {
			if disk.Cache != m.Disk.Cache {
				t.Errorf("a disk has cache=%q, want %q", disk.Cache, m.Disk.Cache)
			}
		}
		if len(d.Disks) == 0 {
			t.Error("no disk")
		}
		if o := d.Topology; o.Sockets != m.Sockets || o.Threads != m.Threads || o.Sockets*o.Cores*o.Threads != n || d.Pages.Size<<10 != m.HugePages {
			t.Errorf("topology %+v, huge pages of %d KiB; want %+v with %d virtual CPUs", o, d.Pages.Size, m, n)
		}
		if d.Model != m.CPU || strings.Contains(text, `mode="host-passthrough"`) != (m.CPU == "") {
			t.Errorf("the CPU model is %q, want %q: %s", d.Model, m.CPU, text)
		}
		var cpus int
		var memory int64
		for _, node := range d.Nodes {
			all, err := notebook.ParseCPUList(node.CPUs)
			if err != nil {
				t.Error(err)
			}
			cpus, memory = cpus+len(all), memory+node.Memory
		}
		if m.Nodes > 1 && (len(d.Nodes) != m.Nodes || cpus != n || memory != d.Memory) || m.Nodes == 1 && len(d.Nodes) > 0 {
			t.Errorf("nodes %+v; want %d of all %d virtual CPUs and %d KiB", d.Nodes, m.Nodes, n, d.Memory)
		}
		if c.Treatment.Provisioning == notebook.Vanilla {
			n = 0
		}
		if len(d.Pins) != n {
			t.Fatalf("%+v", d.Pins)
		}
		for i, p := range d.Pins {
			if p.VCPU != i || p.CPUSet != fmt.Sprint(c.CPUs[i]) {
				t.Errorf("%+v", p)
			}
		}
	})
}

func TestSystemdAccepts(t *testing.T) {
	analyze := program(t, "systemd-analyze", "systemd")
	each(t, everything(t), "systemd", func(t *testing.T, c Choice, text string) {
		file := filepath.Join(t.TempDir(), "advice.service")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// What it does not know, it warns of.
		if said := run(t, nil, analyze, "verify", file); said != "" {
			t.Errorf("%s in\n%s", said, text)
		}
	})
}

// busyboxImage gives an engine an image of a shell, and its name.
func busyboxImage(t *testing.T, docker string) string {
	t.Helper()
	path := ""
	for _, p := range []string{"/bin/busybox", "/usr/bin/busybox"} {
		if _, err := os.Stat(p); err == nil && path == "" {
			path = p
		}
	}
	need(t, path != "", "busybox (apt-get install busybox-static)")
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(
		w.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))}),
		func() error { _, err := w.Write(program); return err }(),
		w.Close()); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("tare-advise-test:%d", os.Getpid())
	run(t, &b, docker, "import", "-", name)
	t.Cleanup(func() {
		if out, err := exec.Command(docker, "rmi", name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return name
}

// The engine starts a container with exactly the flags that are printed, and its cgroup then has those limits.
func TestDockerAccepts(t *testing.T) {
	docker := program(t, "docker", "docker.io")
	need(t, exec.CommandContext(t.Context(), docker, "version").Run() == nil, "a Docker Engine (scripts/docker start)")
	image := busyboxImage(t, docker)
	set, err := os.ReadFile("/proc/self/status")
	need(t, err == nil, "Linux's /proc")
	cpu := ""
	for line := range strings.Lines(string(set)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			if cpus, err := notebook.ParseCPUList(list); err == nil && len(cpus) > 0 {
				cpu = fmt.Sprint(cpus[len(cpus)-1])
			}
		}
	}
	need(t, cpu != "", "the list of CPUs in /proc/self/status")
	small := func(name string, cores float64) notebook.Instance {
		return notebook.Instance{Name: name, Cores: cores, Memory: 96 << 20}
	}
	l := newLab(8).add("cn/docker/vanilla", small("0.5/96MB", 0.5), 9).add("cn/docker/pinned", small("1/96MB", 1), 4)
	l.cpus[l.last().ID] = cpu
	for _, n := range []string{notebook.NetNone, notebook.NetHost} {
		l.treatment(notebook.Treatment{ID: n, Workload: "ffmpeg", Platform: "cn", Engine: "docker", Provisioning: "vanilla", Instance: small("1/96MB", 1), Network: n}, 6)
	}
	l.study.Images["ffmpeg"] = notebook.Image{Reference: image, Digest: "sha256:1111111111112222"}
	a := read(t, Options{}, l.write(t))
	each(t, a, "docker", func(t *testing.T, c Choice, text string) {
		name := fmt.Sprintf("tare-advise-test-%d-%d", os.Getpid(), c.Rank)
		t.Cleanup(func() {
			if out, err := exec.Command(docker, "rm", "-f", name).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		// What is printed goes through a shell; the function adds a name and something to do, and changes no word.
		script := `docker() { shift; command docker run -d --name "$NAME" "$@" /bin/busybox sleep 600; }` + "\n" + text
		t.Setenv("NAME", name)
		run(t, strings.NewReader(script), "/bin/sh", "-eu")
		cat := func(paths ...string) string {
			t.Helper()
			return strings.TrimSpace(run(t, nil, docker, append([]string{"exec", name, "/bin/busybox", "sh", "-c", `for p; do [ ! -e "$p" ] || exec /bin/busybox cat "$p"; done; exit 1`, "sh"}, paths...)...))
		}
		if got, want := cat("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"), fmt.Sprint(96<<20); got != want {
			t.Errorf("memory: %s, want %s", got, want)
		}
		if c.Treatment.Provisioning == notebook.Pinned {
			if got := cat("/sys/fs/cgroup/cpuset.cpus.effective", "/sys/fs/cgroup/cpuset/cpuset.cpus"); got != cpu {
				t.Errorf("CPUs: %s, want %s", got, cpu)
			}
		} else {
			quota := fmt.Sprintf("%.0f", c.Treatment.Instance.Cores*100_000)
			if got := cat("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); got != quota && got != quota+" 100000" {
				t.Errorf("quota: %s, want %s", got, quota)
			}
		}
		links := len(strings.Fields(run(t, nil, docker, "exec", name, "/bin/busybox", "ls", "/sys/class/net")))
		if alone := links == 1; alone != (c.Treatment.Network == notebook.NetNone) {
			t.Errorf("%d network links with the network %q", links, c.Treatment.Network)
		}
	})
}

// hostile are names that a summary may have: a folder is not trusted, nor is what was measured in it.
func hostile(r *rand.Rand) string {
	parts := []string{
		"\n", "\r", "\t", "\x00", "\x1b[2J", "\u2028", "\u0085", "\ufeff", "\u202e", "\xff\xfe", "--", "-->", "<!--", "]]>", "<a b='c'>", "&amp;", "&", `"`, "'", "`id`", "$(id)", "${HOME}", "$X", "%n", "%%", "\\", "\\\n",
		": ", " #", "#", "---\n", "...\n", "- ", "? ", "{", "}", "[", "]", "*a", "&a", "!!python/object", "|", ">", "@", "~", "null", "yes", "1e3", "0x1", "=", ";", "; reboot", "\nExecStart=/bin/evil", "\n[Service]\n",
		"ffmpeg", "é", "日本", " ", "-", "/", "..", strings.Repeat("x", 5000),
	}
	var b strings.Builder
	for range 1 + r.IntN(5) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

func TestHostileNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	plain := everything(t)
	for range 60 {
		a := &Advice{Rankings: []Ranking{plain.Rankings[0]}}
		k := &a.Rankings[0]
		k.Host, k.Workload, k.Metric = hostile(r), hostile(r), notebook.Metric{Name: hostile(r), Unit: hostile(r)}
		k.Image = notebook.Image{Reference: hostile(r), Digest: hostile(r)}
		work, size, engine := hostile(r), hostile(r), hostile(r)
		k.Choices = append([]Choice(nil), k.Choices...)
		for i := range k.Choices {
			c := &k.Choices[i]
			c.Treatment.Workload, c.Treatment.Instance.Name, c.Treatment.Engine, c.Doubts = work, size, engine, []data.Doubt{data.GuestSaid{Text: data.Text{First: notebook.TextMessage(hostile(r))}}}
		}
		if out := text(t, a); strings.ContainsAny(out, "\x00\x1b\r\t\u2028\u0085\u202e") {
			t.Fatalf("%q", out)
		}
		for _, c := range k.Choices {
			for _, format := range Formats {
				if !Expresses(format, c.Treatment) {
					continue
				}
				out := apply(t, a, format, c.Rank)
				var code []string // the lines that are not comments
				for line := range strings.Lines(out) {
					if !strings.HasPrefix(line, "#") {
						code = append(code, line)
					}
				}
				switch format {
				case "docker":
					// All but the comments is one command of words that a shell leaves as they are.
					if len(code) != 1 || strings.ContainsAny(code[0], "'\"`$\\;&|<>*?()[]{}!~") || !strings.HasPrefix(code[0], "docker run --cpu") {
						t.Fatalf("%q", out)
					}
				case "compose":
					if p := composeProject(t, out); len(p.Services) != 1 {
						t.Fatalf("%q", out)
					}
				case "kubernetes":
					kubeDocuments(t, out)
				case "libvirt":
					d := xml.NewDecoder(strings.NewReader(out))
					roots, depth := 0, 0
					for {
						token, err := d.Token()
						if err == io.EOF {
							break
						}
						if err != nil {
							t.Fatalf("%v in %q", err, out)
						}
						switch token.(type) {
						case xml.StartElement:
							if depth == 0 {
								roots++
							}
							depth++
						case xml.EndElement:
							depth--
						}
					}
					if roots != 1 {
						t.Fatalf("%q", out)
					}
				case "systemd":
					for _, line := range code {
						key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
						switch key {
						case "", "[Unit]", "[Service]", "CPUAffinity", "CPUQuota", "AllowedCPUs", "MemoryMax", "MemorySwapMax", "PrivateNetwork":
						case "Description":
							if strings.ContainsAny(value, `%\`) {
								t.Fatalf("%q", out)
							}
						case "ExecStart":
							if value != `/bin/sh -c 'echo "write your command in ExecStart" >&2; exit 1'` {
								t.Fatalf("%q", out)
							}
						default:
							t.Fatalf("%q in %q", line, out)
						}
					}
				}
				if format == "compose" || format == "kubernetes" {
					d := yaml.NewDecoder(strings.NewReader(out))
					for {
						var v any
						if err := d.Decode(&v); err == io.EOF {
							break
						} else if err != nil {
							t.Fatalf("%v in %q", err, out)
						}
					}
				}
			}
		}
	}
}

// A whole folder of hostile names is ranked and printed as any other.
func TestHostileFolder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		l := newLab(8)
		work, metric := strings.ToValidUTF8(hostile(r), "?"), notebook.Metric{Name: hostile(r), Unit: hostile(r)}
		l.host.Hostname, l.rounds = hostile(r), 3
		l.study.Metrics = map[string]notebook.Metric{work: metric}
		for i, p := range []string{"bm", "cn", "cn", "vm", "vmcn", "other"} {
			tr := notebook.Treatment{ID: fmt.Sprint(i), Workload: work, Params: map[string]string{strings.ToValidUTF8(work, "?"): "1"}, Platform: p, Instance: large}
			if p != "bm" {
				tr.Engine, tr.Provisioning = fmt.Sprint(i, hostile(r)), "pinned"
			}
			l.cpus[tr.ID] = hostile(r)
			l.treatment(tr, 4+float64(i))
		}
		a := read(t, Options{}, l.write(t))
		if out := text(t, a); strings.ContainsAny(out, "\x00\x1b\r\t\u2028\u0085\u202e") || len(a.Rankings) != 1 || len(a.Rankings[0].Choices) != 6 {
			t.Fatalf("%q", out)
		}
		var b bytes.Buffer
		if err := JSON(&b, a); err != nil || !json.Valid(b.Bytes()) {
			t.Fatalf("%v: %q", err, b.String())
		}
		for _, format := range Formats {
			if out := apply(t, a, format, 0); strings.ContainsAny(out, "\x00\x1b\r\t\u2028\u0085\u202e") {
				t.Fatalf("%q", out)
			}
		}
	}
}
