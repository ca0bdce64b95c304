package arrivals

import (
	"iter"
	"slices"
	"strings"

	"tare/notebook"
)

// Profile is what the host's CPUs did while containers were started, from samples of their stacks (paper "characterization",
// section 5.1.2).
type Profile struct {
	Hz      int            `json:"hz"`   // samples a second of each CPU that was not idle
	OfS     float64        `json:"of_s"` // duration in seconds
	Samples int            `json:"samples"`
	Lost    int64          `json:"lost,omitempty"`
	Shorter int            `json:"shorter,omitempty"` // samples whose stacks were shortened, because there were too many different ones
	Names   []string       `json:"names"`             // of functions and programs
	Stacks  []ProfileStack `json:"stacks"`            // as Fold returns them; All returns them whole
}

// ProfileStack is the samples with one stack.
type ProfileStack struct {
	Role   string `json:"role"`             // one of ProfileRoles
	Same   int    `json:"same,omitempty"`   // the number of frames of User that are those of the previous stack, and are not repeated
	User   []int  `json:"user,omitempty"`   // indexes in Profile.Names: the program, and its functions, outermost first
	Also   int    `json:"also,omitempty"`   // the number of frames of Kernel that are those of the previous stack
	Kernel []int  `json:"kernel,omitempty"` // functions of the kernel, outermost first; none: the program itself ran
	N      int    `json:"n"`
}

// mostFrames limits the frames that a stack may share with the previous one, because a folder is not trusted.
const mostFrames = 256

// Fold leaves out of each stack the frames that it shares with the previous one. If the stacks are sorted by their frames, these
// are most frames.
func Fold(all []ProfileStack) []ProfileStack {
	folded := slices.Clone(all)
	for i := 1; i < len(all); i++ {
		f, before := &folded[i], all[i-1]
		f.Same, f.Also = common(before.User, f.User), common(before.Kernel, f.Kernel)
		f.User, f.Kernel = f.User[f.Same:], f.Kernel[f.Also:]
	}
	return folded
}

// common is the number of frames that two stacks share from the beginning.
func common(a, b []int) (n int) {
	for n < min(len(a), len(b), mostFrames) && a[n] == b[n] {
		n++
	}
	return n
}

// All yields the stacks whole. The frames of a stack are valid until the next stack.
func (p *Profile) All() iter.Seq[ProfileStack] {
	return func(yield func(ProfileStack) bool) {
		var user, kernel []int
		for _, s := range p.Stacks {
			user = append(user[:within(s.Same, len(user))], s.User...)
			kernel = append(kernel[:within(s.Also, len(kernel))], s.Kernel...)
			s.Same, s.User, s.Also, s.Kernel = 0, user, 0, kernel
			if !yield(s) {
				return
			}
		}
	}
}

func within(n, most int) int { return max(0, min(n, most, mostFrames)) }

// To whom the processes of samples belong.
const (
	ProfileEngine = "engine"         // the engine, and everything that it starts before a container's own first program
	ProfileGuest  = "containers"     // what runs in the containers
	ProfileClient = "client"         // Tare
	ProfileOwn    = "kernel threads" // the kernel's own
	ProfileOthers = "others"
)

// ProfileRoles are all roles.
var ProfileRoles = []string{ProfileEngine, ProfileGuest, ProfileClient, ProfileOwn, ProfileOthers}

// ProfileClass is a kind of work, recognised by the functions in a stack.
type ProfileClass struct {
	Name   string
	Kernel bool     // of samples in the kernel
	Of     []string // beginnings of the names of its functions
}

// ProfileClasses are the kinds of work, in the order in which they are tried. The paper's two are the first kernel class and the
// first class of Go. What matches no class is other work.
var ProfileClasses = []ProfileClass{
	{"memory management", true, []string{"copy_page_range", "handle_mm_fault", "unmap_page_range", "do_user_addr_fault", "exc_page_fault", "asm_exc_page_fault", "do_mmap", "vm_mmap",
		"vm_munmap", "__vm_munmap", "__mmap", "mmap_region", "do_vmi_", "exit_mmap", "dup_mm", "zap_", "free_pgtables", "do_mprotect", "mprotect_fixup", "do_madvise", "do_brk", "__do_sys_brk",
		"shift_arg_pages", "get_user_pages", "populate_vma", "tlb_", "flush_tlb"}},
	{"image layers", true, []string{"ovl_"}},
	{"mounts", true, []string{"path_mount", "do_mount", "do_new_mount", "path_umount", "do_umount", "ksys_umount", "do_move_mount", "move_mount", "vfs_get_tree", "open_tree", "copy_mnt_ns",
		"copy_tree", "attach_recursive_mnt", "mnt_", "namespace_unlock", "put_mnt_ns", "do_change_type", "do_loopback", "cleanup_mnt", "propagate_", "clone_mnt", "umount_tree",
		"__do_sys_pivot_root", "path_pivot_root", "fs_context", "__do_sys_fsconfig", "show_mountinfo", "show_vfsmnt", "m_show"}},
	{"cgroups", true, []string{"cgroup", "css_", "cpuset", "mem_cgroup_css", "cpu_cgroup", "freezer_", "pids_css", "blkcg_css", "devcgroup", "memory_stat", "memcg_stat", "memcg_numa"}},
	{"network", true, []string{"rtnl", "rtnetlink", "netlink", "tcp_", "udp_", "inet", "ip6", "ip_", "nf_", "nft_", "ipt_", "xt_", "do_ipt_", "do_ip6t_", "veth", "br_", "dev_", "register_netdev", "unregister_netdev",
		"__sys_setsockopt", "__dev", "neigh_", "addrconf", "fib_"}},
	{"namespaces", true, []string{"copy_namespaces", "create_new_namespaces", "unshare_nsproxy", "ksys_unshare", "copy_net_ns", "setup_net", "cleanup_net", "switch_task_namespaces", "free_nsproxy",
		"copy_ipcs", "copy_utsname", "copy_pid_ns", "zap_pid_ns", "put_net", "__do_sys_setns", "ipc_"}},
	{"process creation and end", true, []string{"kernel_clone", "copy_process", "dup_task", "bprm_", "do_execve", "__do_execve", "load_elf", "do_exit", "do_group_exit", "release_task", "wait_consider",
		"do_wait", "kernel_wait", "ret_from_fork", "sched_exec", "wake_up_new_task", "begin_new_exec"}},
	{"waiting and scheduling", true, []string{"__schedule", "schedule", "futex", "do_futex", "ep_", "do_epoll", "do_sys_poll", "hrtimer", "do_nanosleep", "try_to_wake", "wake_up_", "__wake_up", "pick_next"}},
	{"pipes and sockets of the host", true, []string{"unix_", "pipe_", "anon_pipe", "sock_", "__sys_send", "__sys_recv", "eventfd"}},
	{"files", true, []string{"vfs_", "do_sys_open", "do_filp_open", "path_openat", "filename_", "path_lookupat", "link_path_walk", "ksys_read", "ksys_write", "do_unlinkat", "do_mkdirat", "do_rmdir",
		"do_renameat", "iterate_dir", "ext4_", "xfs_", "btrfs_", "shmem_", "proc_", "seq_", "do_statx", "do_readlinkat", "__fput", "fput", "do_fsync", "jbd2_"}},
	{"Go's garbage collection and allocation", false, []string{"runtime.mallocgc", "runtime.gc", "runtime.(*gc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.sweep", "runtime.scan", "runtime.markroot",
		"runtime.greyobject", "runtime.wbBuf", "runtime.(*mheap)", "runtime.(*mcache)", "runtime.(*mcentral)", "runtime.(*mspan)", "runtime.newobject", "runtime.growslice", "runtime.makeslice",
		"runtime.(*sweepLocked)", "runtime.(*scavenge", "runtime.(*pageAlloc)", "runtime.mProf"}},
	{"Go's scheduler and start", false, []string{"runtime.schedule", "runtime.findrunnable", "runtime.findRunnable", "runtime.mcall", "runtime.park_m", "runtime.mstart", "runtime.sysmon", "runtime.rt0_go", "runtime.schedinit",
		"runtime.doInit", "runtime.newproc", "runtime.futex", "runtime.notesleep", "runtime.systemstack"}},
	{"JSON and protocols", false, []string{"encoding/", "net/http.", "google.golang.org/", "github.com/gogo/", "github.com/containerd/ttrpc", "github.com/json-iterator"}},
	{"loading libraries", false, []string{"_dl_", "dl_", "do_lookup_x", "elf_machine_rela"}},
}

// OtherWork is the class of a sample that matches no other class, in the kernel or outside it.
func OtherWork(kernel bool) string {
	if kernel {
		return "other, in the kernel"
	}
	return "other, in programs"
}

// Class is the class of the stack's work.
func (p *Profile) Class(s ProfileStack) string {
	frames := s.User
	kernel := len(s.Kernel) > 0
	if kernel {
		frames = s.Kernel
	}
	for _, c := range ProfileClasses {
		if c.Kernel != kernel {
			continue
		}
		for _, f := range frames {
			name := p.Name(f)
			if slices.ContainsFunc(c.Of, func(begin string) bool { return strings.HasPrefix(name, begin) }) {
				return c.Name
			}
		}
	}
	return OtherWork(kernel)
}

// Name is the name of a function or a program; empty if the folder has no such name.
func (p *Profile) Name(i int) string {
	if i < 0 || i >= len(p.Names) {
		return ""
	}
	return p.Names[i]
}

// Shares of the engine's samples, and of all samples, in percent.
var (
	ProfileInKernel  = notebook.Metric{Name: "profile_engine_kernel", Unit: "%"}
	ProfileGC        = notebook.Metric{Name: "profile_engine_go_memory", Unit: "%"}
	ProfileMemory    = notebook.Metric{Name: "profile_engine_kernel_memory", Unit: "%"}
	ProfileOfAll     = notebook.Metric{Name: "profile_engine", Unit: "%"}
	ProfileAllKernel = notebook.Metric{Name: "profile_all_kernel", Unit: "%"}
	ProfileAllGC     = notebook.Metric{Name: "profile_all_go_memory", Unit: "%"}
	ProfileAllMemory = notebook.Metric{Name: "profile_all_kernel_memory", Unit: "%"}
)

// ProfileMetrics are the metrics of a profile.
var ProfileMetrics = []notebook.Metric{ProfileInKernel, ProfileGC, ProfileMemory, ProfileOfAll, ProfileAllKernel, ProfileAllGC, ProfileAllMemory}

// Figures are the values of ProfileMetrics; none without a profile.
func (p *Profile) Figures() map[string]float64 {
	f := map[string]float64{}
	if p == nil {
		return f
	}
	all := 0
	var engine, both, inKernel, bothKernel, gc, bothGC, memory, bothMemory int
	for s := range p.All() {
		all += s.N
		if s.Role != ProfileEngine && s.Role != ProfileGuest {
			continue
		}
		add := func(engines, boths *int) {
			*boths += s.N
			if s.Role == ProfileEngine {
				*engines += s.N
			}
		}
		add(&engine, &both)
		if len(s.Kernel) > 0 {
			add(&inKernel, &bothKernel)
		}
		switch p.Class(s) {
		case "Go's garbage collection and allocation":
			add(&gc, &bothGC)
		case "memory management", "process creation and end":
			add(&memory, &bothMemory)
		}
	}
	share := func(m notebook.Metric, n, of int) {
		if of > 0 {
			f[m.Name] = 100 * float64(n) / float64(of)
		}
	}
	share(ProfileInKernel, inKernel, engine)
	share(ProfileGC, gc, engine)
	share(ProfileMemory, memory, engine)
	share(ProfileOfAll, engine, all)
	share(ProfileAllKernel, bothKernel, both)
	share(ProfileAllGC, bothGC, both)
	share(ProfileAllMemory, bothMemory, both)
	return f
}
