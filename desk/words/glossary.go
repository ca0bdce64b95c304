package words

import "strings"

// Glossary explains the words of a report. more has the terms of kinds of study. means says what a ratio means; %s stands for its percentage.
func Glossary(means []string, more []Term) []Term {
	all := []Term{
		{"Host", "the machine: its sockets, NUMA nodes, cores, memory and kernel."},
		{"Platform", "where the workload runs: bm (bare metal), cn (container), vm (virtual machine), vmcn (container in a virtual machine)."},
		{"Engine", "the program that implements a platform: docker, crun or runc for a container, qemu or microvm for a virtual machine."},
		{"Accelerator", "how a virtual machine’s code runs: kvm (on the processor itself) or tcg (by software emulation). A result under tcg says nothing about the cost of a VM."},
		{"Provisioning", "how CPUs are limited. With a CPU quota (`vanilla` in files) the scheduler chooses the cores. With a CPU set (`pinned` in files) the CPUs are fixed. Bare metal has neither limit."},
		{"Instance type", "the number of cores and the memory that a guest gets."},
		{"Workload", "an application with its input and its metric."},
		{"Treatment", "one combination of platform, engine, provisioning, instance type, workload and its parameters."},
		{"Guest", "one live instance of a platform. Tare creates it for one treatment and destroys it afterwards."},
		{"Trial", "one measured execution of the workload in a guest."},
		{"Warm-up", "an execution before the trials of a guest. It does not count. It also fills the page cache."},
		{"Round", "every treatment once, in random order. Both means of a ratio come from the same rounds, so a drift of the host affects both."},
		{"95 % interval", "a range from a method that contains the true value in about 95 of 100 studies like this one."},
		{"Overhead ratio", "the mean on a platform divided by the mean on bare metal at the same instance type. 1.20 means that " + RatioMeans(means, "20 %") + ". In each round, the mean of bare metal covers both of its arms, including the A/A control."},
	}
	all = append(all, more...)
	return append(all, []Term{
		{"CHR", "container-to-host core ratio: the cores of the instance divided by the online CPUs of the host. A container as large as its host has a CHR of 1."},
		{"PTO, PSO", "platform-type overhead is the cost of a platform at any size. Platform-size overhead is the additional cost of a small instance. Both are shares of the time on bare metal: 0.20 means 20 % longer."},
		{"Network", "how a guest is connected: bridge (behind a bridge, as users of the platform have it), host (the network of the machine that it runs on) or none."},
		{"Load", "the program that sends requests to the service in a guest. It runs outside the guest, on CPUs of the host, and is the same on every platform."},
		{"A/A check", "bare metal compared with itself under another name. The true ratio is 1. If the interval does not contain 1, the host is too unsteady for small differences."},
		{"Isolation ladder", "the steps from bare metal to a whole container, one layer of isolation at a time. Each rung has all layers below it. The own cost of a rung is its mean divided by the mean of the rung below, in the rounds that both have."},
		{"Traced trial", "a trial that tracers observed. It enters no mean and no ratio, because it includes the cost of the tracers."},
		{"Time breakdown", "the parts of a treatment’s overhead. One part is unexplained, so the parts add up to the measured overhead."},
		{"Ruler", "the small program inside every guest that starts the workload and times it. It is the same on every platform."},
	}...)
}

// RatioMeans says what a ratio means that is higher by a percentage: "the work takes 20 % longer".
func RatioMeans(means []string, more string) string {
	var all []string
	for _, m := range means {
		all = append(all, strings.Replace(m, "%s", more, 1))
	}
	return strings.Join(all, ", or that ")
}
