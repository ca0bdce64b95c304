package notebook

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// InstanceTypes are the instance types that have a name (paper "pinning", Table II), the smallest first.
var InstanceTypes = []Instance{
	{Name: "large", Cores: 2, Memory: 8 << 30},
	{Name: "xlarge", Cores: 4, Memory: 16 << 30},
	{Name: "2xlarge", Cores: 8, Memory: 32 << 30},
	{Name: "4xlarge", Cores: 16, Memory: 64 << 30},
	{Name: "8xlarge", Cores: 32, Memory: 128 << 30},
	{Name: "16xlarge", Cores: 64, Memory: 256 << 30},
}

// Bounds of what ParseInstance takes.
const (
	leastCores  = 0.01
	mostCores   = 1 << 16
	leastMemory = 32 << 20 // bytes; below it not even a ruler and a shell start
	mostMemory  = 1 << 50  // bytes
)

// instanceSize is compiled when it is first used: the ruler, which starts with every guest and has this package, does not use it.
var instanceSize = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{1,5}(?:\.[0-9]{1,3})?)/([0-9]{1,9}[KMGT]B)$`)
})

// ParseMemory reads a size such as 512MB, in bytes; a GB is 2^30 bytes. Its errors say what is allowed.
func ParseMemory(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGTB")
	n, err := strconv.ParseInt(digits, 10, 64)
	power := strings.Index("KMGT", strings.TrimSuffix(text[len(digits):], "B")) + 1
	if unit := int64(1) << (10 * power); err == nil && len(text) == len(digits)+2 && power > 0 && n <= mostMemory/unit && n*unit >= leastMemory {
		return n * unit, nil
	}
	return 0, fmt.Errorf("%q: must be a size from 32MB to 1024TB", text)
}

// ParseInstance reads an instance type: a name of InstanceTypes, in letters of either case, or cores/memory like
// 0.5/1GB, where a GB is 2^30 bytes, as the platforms' own tools have it. Its errors say what is allowed.
func ParseInstance(text string) (Instance, error) {
	if i := slices.IndexFunc(InstanceTypes, func(i Instance) bool { return strings.EqualFold(i.Name, text) }); i >= 0 {
		return InstanceTypes[i], nil
	}
	m := instanceSize().FindStringSubmatch(text)
	if m == nil {
		var names []string
		for _, i := range InstanceTypes {
			names = append(names, i.Name)
		}
		return Instance{}, fmt.Errorf("unknown size %q; use %s, or CPUs/memory such as 0.5/1GB", text, strings.Join(names, ", "))
	}
	cores, err := strconv.ParseFloat(m[1], 64)
	if err != nil || cores < leastCores || cores > mostCores {
		return Instance{}, fmt.Errorf("instance %q: must have from %g to %d CPUs", text, leastCores, mostCores)
	}
	memory, err := ParseMemory(m[2])
	if err != nil {
		return Instance{}, fmt.Errorf("instance %q: must have from 32MB to 1024TB of memory", text)
	}
	return Instance{Name: text, Cores: cores, Memory: memory}, nil
}

// HostSize is the name of the instance type that is as large as the host: OfHost.
const HostSize = "host"

// OfHost is the instance type that is as large as the host: all CPUs that are online, and its memory except a sixteenth, of 1 GiB at
// least, which the host itself and what makes its guests need. What has no limits (Whole) is of this size.
func OfHost(h Host) Instance {
	const step = 64 << 20
	spare := max(h.Memory/16, 1<<30)
	return Instance{Name: HostSize, Cores: float64(len(h.CPUs)), Memory: max(h.Memory-spare, 0) / step * step}
}

// Whole says whether it has no part of a core.
func (i Instance) Whole() bool { return i.Cores == math.Trunc(i.Cores) && i.Cores >= 1 }

// SameSize says whether two instance types have the same cores and the same memory, whatever their names.
func (i Instance) SameSize(other Instance) bool {
	return i.Cores == other.Cores && i.Memory == other.Memory
}
