package export

import (
	"bytes"
	"encoding/json"
	"io"

	"tare/desk/data"
)

// subject is what an answer is about: a treatment on its host, as every answer's JSON has it.
type subject struct {
	Treatment    string            `json:"treatment"`         // name of the configuration within its study
	Name         string            `json:"name,omitempty"`    // of the environment, for people: "Docker, CPU quota (--cpus)"
	Host         string            `json:"host"`              // hostname
	Workload     string            `json:"workload"`          // name of the workload
	Params       map[string]string `json:"params"`            // parameters of the workload
	Platform     string            `json:"platform"`          // bm, cn, vm or vmcn
	Engine       *string           `json:"engine"`            // container engine or VM monitor; null on bare metal
	Accelerator  *string           `json:"accelerator"`       // of a VM: kvm or tcg; else null
	Provisioning *string           `json:"provisioning"`      // how CPUs are limited: vanilla (quota), pinned (set) or whole; null on bare metal
	Instance     string            `json:"instance"`          // name of the size: CPUs and memory
	Network      *string           `json:"network"`           // of a container, if the study names it; else null
	Isolation    *string           `json:"isolation"`         // topmost layer of the isolation ladder; null outside ladders
	Machine      *string           `json:"machine,omitempty"` // options of a VM that differ from the usual ones; absent if none do
	HostCores    int               `json:"host_cores"`        // CPUs of the host that were online
	AA           bool              `json:"aa_control"`        // this is the A/A control: bare metal measured a second time
}

func subjectOf(r *data.Row) subject {
	t := r.Treatment
	return subject{
		Treatment: t.ID, Host: r.Host, Workload: t.Workload, Params: params(t.Assigned()), Platform: t.Platform, Engine: word(t.Engine), Accelerator: word(t.Accelerator),
		Provisioning: word(t.Provisioning), Instance: t.Instance.Name, Network: word(t.Network), Isolation: word(t.Isolation), Machine: word(t.Machine), HostCores: r.HostCores, AA: t.AA,
	}
}

// params are never null.
func params(p map[string]string) map[string]string {
	if p == nil {
		return map[string]string{}
	}
	return p
}

// word is null where it is empty.
func word(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// list is never null.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// write writes an answer as indented JSON.
func write(w io.Writer, answer any) error {
	e := NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(answer)
}

// joined are objects as one, which has their keys in this order.
func joined(objects ...any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	whole := []byte("{")
	for _, o := range objects {
		b.Reset()
		if err := e.Encode(o); err != nil {
			return nil, err
		}
		keys := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(b.Bytes()), []byte("{")), []byte("}"))
		if len(keys) > 0 && len(whole) > 1 {
			whole = append(whole, ',')
		}
		whole = append(whole, keys...)
	}
	return append(whole, '}'), nil
}
