package words

// tracerMetrics describes each of notebook.TracerMetrics, by tracer.
var tracerMetrics = map[string]string{
	"delay_s":   "all threads' time in run queues, throttled time among it",
	"blocked_s": "all threads' waits for block devices, where kernel.task_delayacct is on",

	"elapsed_s": "from the creation of the trial's process to its end, as the tracer saw it",
	"run_s":     "all threads' time on a core",
	"cpus_used": "CPUs of the host on which threads ran",

	"switches":         "times that a thread left its core",
	"waits":            "of these: it had to wait for something",
	"preemptions":      "of these: it could have gone on",
	"wakeups":          "times that a waiting thread could go on",
	"migrations":       "times that a thread was moved to another core",
	"cache_migrations": "of these: to one with another last-level cache",
	"node_migrations":  "of these: to one of another NUMA node",
	"tasks":            "threads and processes that were created",

	"periods":           "periods of the CPU quota in which the guest ran",
	"throttled_periods": "of these: the quota was spent before the end",
	"throttled_s":       "time for which run queues were throttled, added over the cores",

	"user_s":   "CPU time in the guest's own code",
	"system_s": "CPU time in the kernel for it",
	"guest_s":  "CPU time in a VM's code (KVM)",

	"interrupt_s": "interrupts on the guest's CPUs, whoever they were for",
	"steal_s":     "time that the hypervisor under this machine took from the guest's CPUs",

	"minor_faults":    "page faults that needed no reading",
	"major_faults":    "page faults that had to read",
	"reclaimed_pages": "pages that the kernel took back from the guest",
	"huge_faults":     "huge pages given at a fault; of the whole host",

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

	"exits":  "times that a virtual CPU was left; by reason before the name",
	"exit_s": "time until it went on; by reason before the name",

	"samples":     "samples of running threads that the following shares are of",
	"cgroup_s":    "kernel time in cgroup accounting and CPU quotas; a lower bound, from samples",
	"scheduler_s": "kernel time in the scheduler; a lower bound, from samples",
	"kernel_s":    "kernel time in all; estimated from samples",
}

// TracerMetric describes a tracer's metric, by its name without a role or a device. It is empty for a metric of another version of Tare.
func TracerMetric(name string) string { return tracerMetrics[name] }
