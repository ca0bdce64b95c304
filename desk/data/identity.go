package data

import (
	"strconv"

	"tare/notebook"
)

// Identity is all that distinguishes rows. Results with the same identity are one row.
type Identity struct {
	HostID, LoadFrom string
	Workload         string
	Assigned         string // the function Assigned, of the treatment
	Digest, Input    string // of its image
	Metric           notebook.Metric
	IsFigure         bool   // Row.IsFigure
	Kind, Config     string // of the study, with Config.Identity: the mean of two guests cannot be compared with that of eight

	Variant      notebook.Variant
	Provisioning string
	Size         Size
	HostCores    int
	AA           bool
}

// Size is an instance without its name.
type Size struct {
	Cores float64
	Bytes int64
}

// SizeOf returns the size of an instance.
func SizeOf(i notebook.Instance) Size { return Size{i.Cores, i.Memory} }

// Identity returns the row's identity.
func (r *Row) Identity() Identity {
	t := r.Treatment
	return Identity{
		HostID: r.HostID, LoadFrom: r.LoadFrom, Workload: t.Workload, Assigned: Assigned(t), Digest: r.Image.Digest, Input: r.Image.Input, Metric: r.Metric, IsFigure: r.IsFigure,
		Kind: r.Kind, Config: r.identity, Variant: t.Variant(), Provisioning: t.Provisioning, Size: SizeOf(t.Instance), HostCores: r.HostCores, AA: t.AA,
	}
}

// Group is the identity without what distinguishes rows that may be compared with each other.
func (i Identity) Group() Identity {
	i.Variant, i.Provisioning, i.Size, i.HostCores, i.AA = notebook.Variant{}, "", Size{}, 0, false
	return i
}

// Assigned returns a treatment's parameters and the factors that are written like them as one text. Two treatments have the same text only if
// all of these are equal.
func Assigned(t notebook.Treatment) string {
	all := t.Assigned()
	quoted := make(map[string]string, len(all))
	for k, v := range all {
		quoted[strconv.Quote(k)] = strconv.Quote(v)
	}
	return notebook.Assignments(quoted, ",")
}
