package notebook

// Parameters of a treatment that are not its workload's own: how its processes' pages are placed. ParamNeighbours is another.
const (
	ParamAddresses = "addresses"
	ParamHugePages = "huge_pages"
)

// ParamDevices is the parameter of a treatment that names the host's devices which its guests have, as CDI does, separated by commas.
const ParamDevices = "devices"

// Placing are those of a treatment's parameters that are of any workload's; nil: none is.
func Placing(params map[string]string) (some map[string]string) {
	for _, k := range []string{ParamAddresses, ParamHugePages, ParamNeighbours, ParamCache, ParamRoot, ParamDevices} {
		if v, ok := params[k]; ok {
			if some == nil {
				some = map[string]string{}
			}
			some[k] = v
		}
	}
	return some
}

// Where a process's mappings are.
const (
	AddressesRandom = "random" // as the kernel places them: at random, if the host's kernel.randomize_va_space says so
	AddressesFixed  = "fixed"  // the same in each process of a program: personality(2), ADDR_NO_RANDOMIZE
)

// Which pages a process has.
const (
	HugePagesHost   = "host"   // as the host has it
	HugePagesNever  = "never"  // no transparent huge pages: prctl(2), PR_SET_THP_DISABLE
	HugePagesAlways = "always" // transparent huge pages without being asked: a setting of the host
	HugePagesLarge  = "large"  // anonymous memory in folios of 64 KiB without being asked, and no transparent huge pages: settings of the host
)

// Addresses and HugePages are all of these.
var (
	Addresses = []string{AddressesRandom, AddressesFixed}
	HugePages = []string{HugePagesHost, HugePagesNever, HugePagesAlways, HugePagesLarge}
)

// ParamRoot is the parameter of a treatment that says whose its guests' root is: one of Roots (paper "virtualization-overheads", section 6.4).
const ParamRoot = "root"

// Whose a guest's root is.
const (
	RootShared = "shared" // the image's, which all guests read, below what each writes
	RootCopied = "copied" // a copy of it for each guest, so that no two guests read one file
)

// Roots are all of these.
var Roots = []string{RootShared, RootCopied}

// ParamCache is the parameter of a treatment that says whether the files that a start reads are in the host's page cache: one of Caches.
const ParamCache = "cache"

// What the host's page cache has before a start.
const (
	CacheCold = "cold" // nothing of the guest's root, its files, and what its engine reads for it
	CacheWarm = "warm" // all of that
)

// Caches are both.
var Caches = []string{CacheCold, CacheWarm}

// ParamRate is the parameter of a treatment that is the rate at which its containers are asked to start, per second.
const ParamRate = "rate"
