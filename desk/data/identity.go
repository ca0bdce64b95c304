package data

import (
	"strconv"

	"tare/notebook"
)

// Identity is what distinguishes rows. Rows that differ in none of it are one.
type Identity struct {
	HostID, LoadFrom string
	Workload         string
	Assigned         string // Assigned of its treatment
	Digest, Input    string // of its image
	Metric           notebook.Metric
	IsFigure         bool   // Row.IsFigure
	Kind, Config     string // of the study, and what Config.Identity says: the mean of two guests is another figure than that of eight

	Variant      notebook.Variant
	Provisioning string
	Size         Size
	HostCores    int
	AA           bool
}

// Size is how large an instance is, whatever its name.
type Size struct {
	Cores float64
	Bytes int64
}

// SizeOf is an instance's.
func SizeOf(i notebook.Instance) Size { return Size{i.Cores, i.Memory} }

// Identity is the row's.
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

// Assigned are a treatment's parameters and those factors that are written like them, in one text: two treatments have the same text only if
// they are equal in all of these.
func Assigned(t notebook.Treatment) string {
	all := t.Assigned()
	quoted := make(map[string]string, len(all))
	for k, v := range all {
		quoted[strconv.Quote(k)] = strconv.Quote(v)
	}
	return notebook.Assignments(quoted, ",")
}
