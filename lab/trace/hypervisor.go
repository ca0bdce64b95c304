//go:build linux

package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/notebook"
)

// The tracer of a VM's exits, by reason.
var _ = add(tracer{
	name:     notebook.TracerHypervisor,
	on:       "KVM's tracepoints",
	hostOnly: true, // guests run no VMs
	programs: []string{"vcpu_exit", "vcpu_entry"},
	open: func(tr *tracer) error {
		k, err := readKVMFormat()
		if err != nil {
			return err
		}
		tr.attach, tr.read = k.attach, k.readExits
		return nil
	},
})

// waited mirrors the struct of that name in bpf/trace.h.
type waited struct{ NS, Count uint64 }

func (k *kvmFormat) attach(t *Trace) error {
	if !slices.ContainsFunc(t.target.Threads, func(t engine.Thread) bool { return t.Role == notebook.RoleVCPU }) {
		return nil
	}
	if err := t.kit.put("reason_at", 0, k.reasonAt); err != nil {
		return err
	}
	for program, id := range map[string]uint64{"vcpu_exit": k.exit, "vcpu_entry": k.entry} {
		if err := t.attachPerf(program, unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: id, Sample: 1}); err != nil {
			return err
		}
	}
	return nil
}

func (k *kvmFormat) readExits(t *Trace, p *notebook.Trace) error {
	var reason uint32
	var e waited
	each := t.kit.coll.Maps["exits"].Iterate()
	for each.Next(&reason, &e) {
		p.Figures["exits"] += float64(e.Count)
		p.Figures["exit_s"] += float64(e.NS) * nano
		name := k.name(reason)
		p.Figures[name+".exits"] += float64(e.Count)
		p.Figures[name+".exit_s"] += float64(e.NS) * nano
	}
	return each.Err()
}

// kvmFormat is the kernel's description of KVM's tracepoints.
type kvmFormat struct {
	exit, entry uint64            // the tracepoints' ids
	reasonAt    uint32            // offset of the reason in the record of kvm_exit
	reasons     map[uint32]string // names of reasons on CPUs of this vendor
}

// maxFormat is the most that is read of a tracepoint's description, in bytes.
const maxFormat = 64 << 10

// readKVMFormat reads the description from a tracefs that is mounted nowhere, so that the host's mounts stay as they are.
func readKVMFormat() (*kvmFormat, error) {
	dir, err := openTracefs()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	k := &kvmFormat{}
	format, err := readKVM(dir, "kvm_exit/format")
	if err == nil {
		k.reasonAt, k.reasons, err = parseExitFormat(format, intel())
	}
	if err == nil {
		k.exit, err = kvmID(dir, "kvm_exit")
	}
	if err == nil {
		k.entry, err = kvmID(dir, "kvm_entry")
	}
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, errors.New("the kernel has no KVM tracepoints; modprobe kvm")
		}
		return nil, fmt.Errorf("KVM's tracepoints: %w", err)
	}
	return k, nil
}

func openTracefs() (*os.File, error) {
	fs, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("tracefs: %w; needs root, and a kernel with tracefs", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("tracefs: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, fmt.Errorf("tracefs: %w", err)
	}
	return os.NewFile(uintptr(fd), "tracefs"), nil
}

// readKVM reads one of tracefs' files about KVM.
func readKVM(tracefs *os.File, name string) (string, error) {
	fd, err := unix.Openat(int(tracefs.Fd()), filepath.Join("events/kvm", name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: "events/kvm/" + name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFormat))
	return string(b), err
}

func kvmID(tracefs *os.File, name string) (uint64, error) {
	text, err := readKVM(tracefs, name+"/id")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(text), 10, 32)
}

var (
	reasonField = regexp.MustCompile(`field:unsigned int exit_reason;\s*offset:(\d+);\s*size:4;`)
	reasonName  = regexp.MustCompile(`\{ ([^{},]+), "([^"]*)" \}`)
)

// parseExitFormat reads the description of kvm_exit: the offset of the reason, and the names that the kernel would print. There are two
// lists of names: first Intel's, then AMD's.
func parseExitFormat(text string, intel bool) (at uint32, names map[uint32]string, err error) {
	m := reasonField.FindStringSubmatch(text)
	if m == nil {
		return 0, nil, errors.New("kvm_exit: its format has no field exit_reason of four bytes")
	}
	offset, err := strconv.ParseUint(m[1], 10, 16)
	if err != nil {
		return 0, nil, fmt.Errorf("kvm_exit: exit_reason's offset: %w", err)
	}
	lists := strings.Split(text, "__print_symbolic(")
	names = map[uint32]string{}
	i := 1
	if !intel {
		i = 2
	}
	if i >= len(lists) { // a kernel with fewer lists: numbers will do
		return uint32(offset), names, nil
	}
	list, _, _ := strings.Cut(lists[i], "__print_flags(")
	for _, m := range reasonName.FindAllStringSubmatch(list, -1) {
		value := int64(0)
		for part := range strings.SplitSeq(m[1], "+") {
			n, err := strconv.ParseInt(strings.TrimSpace(part), 0, 64)
			if err != nil {
				return 0, nil, fmt.Errorf("kvm_exit: %q is not the number of a reason", m[1])
			}
			value += n
		}
		names[uint32(value)] = m[2]
	}
	return uint32(offset), names, nil
}

// intel reports whether this machine's CPU is made by Intel.
func intel() bool {
	b, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && strings.Contains(string(b), "GenuineIntel")
}

// name returns the kernel's name of a reason, or else its number.
func (k *kvmFormat) name(reason uint32) string {
	if n, ok := k.reasons[reason]; ok {
		return n
	}
	if n, ok := k.reasons[reason&0xffff]; ok {
		return n
	}
	return fmt.Sprintf("reason %d", reason)
}
