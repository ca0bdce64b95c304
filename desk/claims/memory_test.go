package claims_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "tare/desk/claims"
	"tare/desk/data"
	"tare/desk/show/kinds"
	"tare/notebook"
	"tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// guestWeight is what guests of a treatment take, in MiB.
type guestWeight struct {
	alone, aloneRSS, aloneKSM float64
	added, addedKSM           float64 // by one more
	limit, limitKSM           float64 // on average, in the end
	within, host, guests      float64 // duplicates

	own, ram, emulator, files, kernel, processes, left, idle float64 // of the last guest
	idleAlone, unmapped                                      float64 // of a single guest
	anonAnon, fileFile, anonFile                             float64
	forIt                                                    float64 // the host's kernel has for it
}

// asTheThesisSays are its whole distributions, and lean guests for which the general claims of claims/memory.yaml hold, and its container with bash.
var asTheThesisSays = map[string]guestWeight{
	"system cn lxc pinned": {forIt: 6, alone: 16, aloneRSS: 44, aloneKSM: 16, added: 9, addedKSM: 9, limit: 9, limitKSM: 9},
	"system vm qemu kvm pinned": {forIt: 2, alone: 235, aloneRSS: 241, aloneKSM: 187, added: 180, addedKSM: 91, limit: 180, limitKSM: 90, within: 29, host: 32, guests: 59,
		own: 91, ram: 68, emulator: 23, files: 40, kernel: 15, processes: 11, left: 26, idle: 2, idleAlone: 5.38, unmapped: 2, anonAnon: 94, fileFile: 10.5, anonFile: 15.5},
	"system vm qemu kvm pinned boot=disk no-kaslr no-thp devices=usb,balloon": {alone: 220, own: 86, left: 26, idle: 2},

	"system-used vm qemu kvm pinned":   {alone: 400, idleAlone: 100}, // of which the thesis has no number
	"system root=copied cn lxc pinned": {alone: 16, aloneRSS: 44, aloneKSM: 16, added: 15.5, addedKSM: 15.5, limit: 15.5, limitKSM: 15.5},

	"shell bm":                            {alone: 1.4, aloneRSS: 1.4, aloneKSM: 1.4, added: 0.4, addedKSM: 0.4, limit: 0.4, limitKSM: 0.4},
	"shell bm aa":                         {alone: 1.4, aloneRSS: 1.4, aloneKSM: 1.4, added: 0.4, addedKSM: 0.4, limit: 0.4, limitKSM: 0.4},
	"shell cn docker pinned":              {alone: 12, aloneRSS: 14, aloneKSM: 12, added: 5, addedKSM: 5, limit: 5, limitKSM: 5},
	"shell merging=asked cn lxc pinned":   {alone: 2, aloneRSS: 4, aloneKSM: 2, added: 1.3, addedKSM: 1.3, limit: 1.3, limitKSM: 1.3},
	"shell merging=unasked cn lxc pinned": {alone: 2, aloneRSS: 4, aloneKSM: 2, added: 1.3, addedKSM: 1.3, limit: 1.3, limitKSM: 1.3},
	"shell cn lxc pinned":                 {alone: 2, aloneRSS: 4, aloneKSM: 2, added: 1.3, addedKSM: 1.3, limit: 1.3, limitKSM: 1.3},
	"shell vm qemu kvm pinned": {alone: 120, aloneRSS: 122, aloneKSM: 100, added: 100, addedKSM: 60, limit: 95, limitKSM: 50, within: 20, host: 24, guests: 40,
		own: 91, ram: 68, emulator: 23, files: 55, left: 26, idle: 2, anonAnon: 94, fileFile: 10.5, anonFile: 15.5},
}

// otherwise is the opposite: a process takes most, KSM works only for containers, and more guests take more each.
var otherwise = map[string]guestWeight{
	"system cn lxc pinned": {forIt: 2, alone: 200, aloneRSS: 200, aloneKSM: 100, added: 200, addedKSM: 100, limit: 220, limitKSM: 120},
	"system vm qemu kvm pinned": {forIt: 6, alone: 50, aloneRSS: 100, aloneKSM: 50, added: 60, addedKSM: 60, limit: 60, limitKSM: 60, within: 40, host: 24, guests: 20,
		own: 91, ram: 23, emulator: 68, files: 2, kernel: 1, processes: 20, left: 80, idle: 11, idleAlone: 20, unmapped: 20, anonAnon: 10.5, fileFile: 94, anonFile: 15.5},
	"system vm qemu kvm pinned boot=disk no-kaslr no-thp devices=usb,balloon": {alone: 220, own: 86, left: 2, idle: 2},

	"system-used vm qemu kvm pinned":   {alone: 50, idleAlone: 10},
	"system root=copied cn lxc pinned": {alone: 200, aloneRSS: 200, aloneKSM: 100, added: 200, addedKSM: 100, limit: 220, limitKSM: 120},

	"shell bm":                            {alone: 300, aloneRSS: 300, aloneKSM: 300, added: 300, addedKSM: 300, limit: 300, limitKSM: 300},
	"shell bm aa":                         {alone: 300, aloneRSS: 300, aloneKSM: 300, added: 300, addedKSM: 300, limit: 300, limitKSM: 300},
	"shell cn docker pinned":              {alone: 200, aloneRSS: 200, aloneKSM: 100, added: 200, addedKSM: 100, limit: 220, limitKSM: 120},
	"shell merging=asked cn lxc pinned":   {alone: 200, aloneRSS: 200, aloneKSM: 100, added: 200, addedKSM: 50, limit: 220, limitKSM: 120},
	"shell merging=unasked cn lxc pinned": {alone: 200, aloneRSS: 200, aloneKSM: 100, added: 200, addedKSM: 100, limit: 220, limitKSM: 120},
	"shell cn lxc pinned":                 {alone: 200, aloneRSS: 200, aloneKSM: 100, added: 200, addedKSM: 100, limit: 220, limitKSM: 120},
	"shell vm qemu kvm pinned": {alone: 50, aloneRSS: 100, aloneKSM: 50, added: 60, addedKSM: 60, limit: 60, limitKSM: 60, within: 40, host: 24, guests: 20,
		own: 91, ram: 23, emulator: 68, files: 2, left: 80, idle: 11, anonAnon: 10.5, fileFile: 94, anonFile: 15.5},
}

// devicesOf are VMs with those devices that agree with Table 6.5, a process, and a VM with none. The guest itself takes so much more with all devices.
func devicesOf(accelerator string, less map[string]float64, increment, inGuest float64) map[string]guestWeight {
	of := map[string]guestWeight{"shell bm": asTheThesisSays["shell bm"], "shell bm aa": asTheThesisSays["shell bm aa"]}
	for devices, saved := range less {
		w := asTheThesisSays["shell vm qemu kvm pinned"]
		w.aloneKSM -= saved
		if devices == "usb,balloon" {
			w.addedKSM -= increment
		}
		if devices == "virt-manager" {
			w.ram += inGuest
		}
		of["shell vm qemu "+accelerator+" pinned devices="+devices] = w
	}
	return of
}

// table65 is what the thesis saves.
var table65 = map[string]float64{
	"virt-manager": 0, "ich6,usb,balloon": 13.5, "qxl,spice,usb,balloon": 5.3, "qxl,spice,ich6,balloon": 5.2, "usb,balloon": 15.3, "ich6,balloon": 15.2,
	"qxl,spice,balloon": 5.12, "balloon": 13.6,
}

// folders counts the folders of weighed.
var folders atomic.Int64

// weighed writes the folder of a study that weighed such guests of one size in so many rounds. One of more than two guests has whole distributions with a shared root and with copies,
// as density-roots has them.
func weighed(t *testing.T, m memory.Config, size string, of map[string]guestWeight, rounds int, noise float64) string {
	t.Helper()
	f := notebooktest.New(4)
	f.Rounds, f.Noise, f.Start = rounds, 0, notebooktest.At.Add(time.Duration(folders.Add(1))*time.Hour) // no two folders are of one time
	f.Study.Design = notebook.Design{Floor: rounds, Cap: rounds, Trials: 1, TimeoutS: 60}
	f.Study.Kind, f.Study.Config, f.Study.Also = memory.Name, &m, map[string][]notebook.Metric{}
	for _, w := range []string{"shell", "system", "system-used"} {
		f.Study.Metrics[w], f.Study.Also[w] = memory.PSS, m.Figures()
	}
	all := map[string]guestWeight{}
	for words, w := range of {
		kind, rest, _ := strings.Cut(words, " ")
		switch many, copied := len(m.Guests) > 2, strings.Contains(words, "root=copied"); {
		case many && kind != "shell" && !copied:
			words = kind + " root=shared " + rest
		case !many && copied:
			continue
		}
		all[words+" "+size] = w
	}
	for _, words := range slices.Sorted(maps.Keys(all)) {
		f.Add(words, all[words].alone)
	}
	g := rand.New(rand.NewPCG(3, uint64(rounds)))
	f.Trial = func(x *notebook.Trial) {
		w := all[x.Treatment]
		figures := map[notebook.Metric]float64{
			memory.PSS: w.added, memory.RSS: w.aloneRSS, memory.USS: w.added, memory.Merged: w.addedKSM,
			memory.Alone: w.alone, memory.AloneRSS: w.aloneRSS, memory.AloneKSM: w.aloneKSM,
			memory.Added: w.added, memory.AddedKSM: w.addedKSM, memory.Asymptote: w.limit, memory.LimitKSM: w.limitKSM,
			memory.Own: w.own, memory.RAM: w.ram, memory.Emulator: w.emulator, memory.GuestFile: w.files, memory.GuestCore: w.kernel, memory.GuestAnon: w.processes,
			memory.Left: w.left, memory.Idle: w.idle, memory.IdleAlone: w.idleAlone, memory.Unmapped: w.unmapped, memory.Best: w.own - w.left - w.idle,
			memory.AnonAnon: w.anonAnon, memory.FileFile: w.fileFile, memory.AnonFile: w.anonFile,
			memory.Within: w.within, memory.WithHost: w.host, memory.WithGuests: w.guests, memory.Kernel: w.forIt,
		}
		x.Figures = map[string]float64{}
		for _, k := range append([]notebook.Metric{memory.PSS}, m.Figures()...) { // in one order
			x.Figures[k.Name] = figures[k] * math.Exp(noise*g.NormFloat64())
		}
		x.Value, x.ElapsedS = x.Figures[memory.PSS.Name], 0
	}
	return f.Write(t)
}

// The shipped studies that weigh; density also with what incremental and duplicates ask.
var (
	footprint = memory.Config{Guests: []int{1, 2}, KSM: notebook.KSMPaper, PageCache: true}
	devices   = memory.Config{Guests: []int{1, 2}, KSM: notebook.KSMPaper, Frames: true, PageCache: true}
	density   = memory.Config{Guests: []int{1, 2, 4, 8}, KSM: notebook.KSMPaper, Frames: true, PageCache: true}
)

// askedOf are the claims that only studies test which ask VMs what their memory is to them.
var askedOf = []string{
	"increment-emulator", "increment-emulator-number", "increment-ram-number", "increment-ram", "increment-anonymous", "increment-files-number", "increment-anonymous-number", "duplicates-all", "duplicates-columns", "duplicates-ksm", "idle-pages",
	"idle-pages-load", "idle-pages-increment", "increment-unmapped", "waterfall", "waterfall-third",
}

// limits are the claims on many guests, which footprint's two say nothing of.
var limits = []string{
	"density-vm-falls", "density-bash-limit", "density-bash-falls", "density-60", "density-vm-limit", "density-vm-seven", "density-container-limit", "density-container-half",
	"density-narrows", "density-copied", "density-10", "density-5",
}

// contradictsTheThesis says whether a claim cannot hold where the thesis's other numbers are true: below 100 MB at seven VMs.
func contradictsTheThesis(v Verdict) bool { return v.Claim.ID == "density-vm-seven" }

// ofGuestMemory are the claims on what a VM's memory is to its guest, which emulated VMs decide.
var ofGuestMemory = []string{
	"increment-ram-number", "increment-ram", "increment-anonymous", "increment-files-number", "increment-anonymous-number", "duplicates-within", "duplicates-host", "duplicates-guests", "duplicates-all", "duplicates-columns", "duplicates-order", "duplicates-ksm",
	"idle-pages", "idle-pages-load", "devices-guest",
}

// judgeMemory judges the thesis' claims on memory by folders.
func judgeMemory(t *testing.T, dirs ...string) []Verdict {
	t.Helper()
	all, err := Shipped("memory")
	if err != nil {
		t.Fatal(err)
	}
	s, err := data.Read(dirs, data.Options{Kinds: kinds.All})
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(c Claim) bool { return strings.HasPrefix(c.Group, "Density, ") }) // chapter 4 is of times
	return Judge(s, all)
}

func TestMemoryClaimsHoldWhereTheThesisIsTrue(t *testing.T) {
	f, d := weighed(t, footprint, "1/1GB", asTheThesisSays, 10, 0.0001), weighed(t, density, "1/512MB", asTheThesisSays, 10, 0.0001)
	x := weighed(t, devices, "1/1GB", devicesOf(notebook.KVM, table65, 5.3, 1), 10, 0.0001)
	for name, dirs := range map[string][]string{"density": {d}, "both": {f, d}, "all": {f, d, x}} {
		for _, v := range Testable(t, 15, judgeMemory(t, dirs...)) {
			if isOfDevices(v) && name != "all" {
				if v.Answer != NotTestable {
					t.Errorf("%s: %s: %s: %s", name, v.Claim.ID, v.Answer, Why(v))
				}
			} else if want := map[bool]Answer{false: Holds, true: DoesNotHold}[contradictsTheThesis(v)]; v.Answer != want {
				t.Errorf("%s: %s: %s, want %s: %s", name, v.Claim.ID, v.Answer, want, Why(v))
			}
		}
	}
	// Two guests have no asymptote, and footprint does not ask them.
	for _, v := range Testable(t, 15, judgeMemory(t, f)) {
		want := Holds
		if slices.Contains(limits, v.Claim.ID) || slices.Contains(askedOf, v.Claim.ID) || isOfDevices(v) {
			want = NotTestable
		}
		if v.Answer != want {
			t.Errorf("two guests: %s: %s, want %s: %s", v.Claim.ID, v.Answer, want, Why(v))
		}
	}
}

func isOfDevices(v Verdict) bool { return strings.HasPrefix(v.Claim.ID, "devices-") }

func TestMemoryClaimsFailWhereTheThesisIsFalse(t *testing.T) {
	saved := map[string]float64{}
	for devices := range table65 {
		saved[devices] = 1
	}
	saved["virt-manager"] = 0
	x := weighed(t, devices, "1/1GB", devicesOf(notebook.KVM, saved, 1, 20), 10, 0.0001)
	for _, v := range Testable(t, 15, judgeMemory(t, weighed(t, density, "1/512MB", otherwise, 10, 0.0001), x)) {
		if v.Answer != DoesNotHold && !contradictsTheThesis(v) {
			t.Errorf("%s: %s: %s", v.Claim.ID, v.Answer, Why(v))
		}
	}
}

// Seven VMs come below 100 MiB each where a single one takes 160 MiB, and each further one 80 in the end.
func TestSevenVMs(t *testing.T) {
	of := maps.Clone(asTheThesisSays)
	vm := of["system vm qemu kvm pinned"]
	vm.aloneKSM, vm.limitKSM = 160, 80
	of["system vm qemu kvm pinned"] = vm
	v := Find(t, judgeMemory(t, weighed(t, density, "1/512MB", of, 10, 0.0001)), "density-vm-seven")
	if v.Answer != Holds || !strings.Contains(Why(v), "PSS alone with KSM + 6 × asymptote of PSS with KSM of") {
		t.Errorf("%s: %s", v.Answer, Why(v))
	}
}

func TestMemoryClaimsAreOpenInNoise(t *testing.T) {
	x := weighed(t, devices, "1/1GB", devicesOf(notebook.KVM, table65, 5.3, 1), 3, 0.6)
	for _, v := range Testable(t, 15, judgeMemory(t, weighed(t, density, "1/512MB", asTheThesisSays, 3, 0.6), x)) {
		if v.Answer != NotDecided {
			t.Errorf("%s: %s: %s", v.Claim.ID, v.Answer, Why(v))
		}
	}
}

// Where VMs are emulated, claims about only containers and processes are decided. For VMs only the claims about the guests' use of their memory are.
func TestMemoryClaimsWhereVMsAreEmulated(t *testing.T) {
	of := map[string]guestWeight{}
	for words, w := range asTheThesisSays {
		of[strings.ReplaceAll(words, " kvm ", " tcg ")] = w
	}
	decided := 0
	x := weighed(t, devices, "1/1GB", devicesOf(notebook.TCG, table65, 5.3, 1), 10, 0.0001)
	for _, v := range Testable(t, 15, judgeMemory(t, weighed(t, density, "1/512MB", of, 10, 0.0001), x)) {
		ofVM := slices.ContainsFunc(v.Needs, func(s Selector) bool { return slices.Contains(s.Platform, notebook.VM) })
		switch {
		case !ofVM && v.Answer == Holds:
			decided++
		case slices.Contains(ofGuestMemory, v.Claim.ID) && v.Answer == Holds && strings.Contains(Why(v), "the VM was emulated, which does not change the guest's own memory"):
		case !ofVM || v.Answer != NotTestable || !strings.Contains(Why(v), "only emulated"):
			t.Errorf("%s: %s: %s", v.Claim.ID, v.Answer, Why(v))
		}
	}
	if decided < 6 {
		t.Errorf("%d claims decided without VMs, want 6 at least", decided)
	}
}

// Where a VM was weighed with KVM as well as emulated, only its memory under KVM counts.
func TestKVMDecidesWhereItIsThere(t *testing.T) {
	of := maps.Clone(asTheThesisSays)
	of["system vm qemu tcg pinned"] = otherwise["system vm qemu kvm pinned"]
	x := devicesOf(notebook.KVM, table65, 5.3, 1)
	for words, w := range devicesOf(notebook.TCG, table65, 5.3, 20) {
		x[words] = w
	}
	vs := judgeMemory(t, weighed(t, density, "1/512MB", of, 10, 0.0001), weighed(t, devices, "1/1GB", x, 10, 0.0001))
	for _, id := range ofGuestMemory {
		if v := Find(t, vs, id); v.Answer != Holds || strings.Contains(Why(v), "emulated") {
			t.Errorf("%s: %s: %s", id, v.Answer, Why(v))
		}
	}
}

// What was weighed without huge pages, as the thesis's guests were, decides by itself where both exist; what was weighed with them decides as before where
// nothing else exists.
func TestWeightsWithoutHugePagesDecide(t *testing.T) {
	with, without := footprint, footprint
	without.HugePages = memory.HugePagesOff
	of := maps.Clone(asTheThesisSays)
	for _, guest := range []string{"system cn lxc pinned", "system vm qemu kvm pinned"} {
		of[guest] = otherwise[guest]
	}
	delete(of, "shell bm aa") // or both folders would be of one time, and one a copy of the other
	old := weighed(t, with, "1/1GB", of, 10, 0.0001)
	for _, c := range []struct {
		dirs []string
		want Answer
	}{{[]string{old}, DoesNotHold}, {[]string{old, weighed(t, without, "1/1GB", asTheThesisSays, 10, 0.0001)}, Holds}} {
		for _, id := range []string{"footprint-vm-pss", "footprint-ratio-pss", "ksm-vm-number"} {
			if v := Find(t, judgeMemory(t, c.dirs...), id); v.Answer != c.want {
				t.Errorf("%d folders: %s: %s, want %s: %s", len(c.dirs), id, v.Answer, c.want, Why(v))
			}
		}
	}
}
