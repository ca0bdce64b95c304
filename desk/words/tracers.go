package words

// tracerMetrics describes each of notebook.TracerMetrics, by tracer.
var tracerMetrics = map[string]string{
	"delay_s":   "all threads' time in run queues, throttled time included",
	"blocked_s": "all threads' waits for block devices, where kernel.task_delayacct is on",

	"elapsed_s": "from the creation of the run's process to its end, as the tracer saw it",
	"run_s":     "all threads' time on a core",
	"cpus_used": "CPUs of the host on which threads ran",

	"switches":         "times that a thread left its core",
	"waits":            "of these: it had to wait for something",
	"preemptions":      "of these: it could have continued",
	"wakeups":          "times that a waiting thread became runnable",
	"migrations":       "times that a thread was moved to another core",
	"cache_migrations": "of these: to one with another last-level cache",
	"node_migrations":  "of these: to one of another NUMA node",
	"tasks":            "threads and processes that were created",

	"periods":           "periods of the CPU quota in which the guest ran",
	"throttled_periods": "of these: the quota was spent before the end",
	"throttled_s":       "time for which run queues were throttled, summed over the cores",

	"user_s":   "CPU time in the guest's own code",
	"system_s": "CPU time in the kernel for it",
	"guest_s":  "CPU time in a VM's code (KVM)",

	"interrupt_s": "interrupts on the guest's CPUs, for any program",
	"steal_s":     "time that the hypervisor under this machine took from the guest's CPUs",

	"minor_faults":    "minor page faults: nothing was read",
	"major_faults":    "major page faults: something was read",
	"reclaimed_pages": "pages that the kernel reclaimed from the guest",
	"huge_faults":     "huge pages allocated at a fault, on the whole host",

	"reads":         "read requests to the device",
	"read_bytes":    "bytes that they read",
	"writes":        "write requests to the device",
	"written_bytes": "bytes that they wrote",

	"received_packets": "packets that came in",
	"received_bytes":   "bytes that came in",
	"sent_packets":     "packets that went out",
	"sent_bytes":       "bytes that went out",

	"anonymous_faults": "page faults in memory without a file; estimated from samples",
	"file_faults":      "page faults in a file's memory; estimated from samples",

	"exits":  "exits of virtual CPUs; by reason before the name",
	"exit_s": "time until it continued; by reason before the name",

	"interrupts":        "interrupts of devices on the whole host; by device before the name",
	"softirqs":          "soft interrupts on the whole host; by kind before the name",
	"io_wakeups":        "wake-ups of threads by an interrupt of a device or of the network",
	"remote_io_wakeups": "those of a thread that last ran on another CPU",
	"far_io_wakeups":    "those of a thread that last ran under another last-level cache",

	"cycles":       "cycles of the CPU's clock in which the work ran",
	"instructions": "instructions that the work and the kernel for it executed",
	"l1d_misses":   "reads that missed the first-level data cache",
	"llc_misses":   "reads that missed the last-level cache",
	"dtlb_misses":  "reads whose address was not in the data TLB",

	"samples":     "samples of running threads, the base of the following shares",
	"cgroup_s":    "kernel time in cgroup accounting and CPU quotas; a lower bound, from samples",
	"scheduler_s": "kernel time in the scheduler; a lower bound, from samples",
	"kernel_s":    "kernel time in all; estimated from samples",

	"charges":       "times that the kernel charged running time to a cgroup",
	"quota_charges": "times that the kernel charged running time to a CPU quota",

	"simple_calls":        "system calls of no other kind, such as getpid",
	"descriptor_calls":    "system calls that only need a descriptor, such as close and fstat",
	"path_calls":          "system calls that look a path up, such as stat",
	"open_calls":          "files that were opened or made",
	"entry_calls":         "changes of directories and of files' metadata, such as rename and unlink",
	"file_calls":          "reads and writes of files and block devices",
	"file_bytes":          "bytes that they read and wrote",
	"pipe_calls":          "reads and writes of pipes, terminals and other devices",
	"pipe_bytes":          "bytes that they read and wrote",
	"socket_calls":        "reads and writes of sockets",
	"socket_bytes":        "bytes that they read and wrote",
	"connection_calls":    "system calls that make and change sockets, such as accept and connect",
	"memory_calls":        "system calls that change the address space, such as mmap",
	"shared_memory_calls": "mappings of memory that others can share, and calls that make such memory",
	"futex_calls":         "waits and wakes of locks (futex)",
	"poll_calls":          "system calls that wait for many descriptors, such as epoll_wait",
	"sleep_calls":         "sleeps, and changes of timers",
	"process_calls":       "threads that were made, and waits for processes",
	"fork_calls":          "processes that were made (fork)",
	"exec_calls":          "programs that were executed",
	"sync_calls":          "flushes of files to the disk, such as fsync",
	"signal_calls":        "system calls about signals",
	"io_uring_calls":      "system calls of io_uring and of asynchronous I/O",
}

// TracerMetric describes a tracer's metric, by its name without a role or a device. It is empty for a metric of another version of Tare.
func TracerMetric(name string) string { return tracerMetrics[name] }
