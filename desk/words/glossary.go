package words

import "strings"

// Glossary explains the words of a report. more are terms of kinds of study. means says what a ratio means; %s stands for its percentage.
func Glossary(means []string, more []Term) []Term {
	all := []Term{
		{"Host", "the machine: its sockets, NUMA nodes, cores, memory and kernel."},
		{"Platform", "where work runs: bm (bare metal), cn (container), vm (virtual machine), vmcn (container in a virtual machine)."},
		{"Engine", "what implements a platform: docker, crun or runc for a container, qemu for a virtual machine."},
		{"Accelerator", "what runs a virtual machine’s code: kvm (the processor itself) or tcg (software emulation). What ran under tcg says nothing about a VM’s cost."},
		{"Provisioning", "how CPUs are limited. A CPU quota (`vanilla` in files): the scheduler chooses the cores. A CPU set (`pinned`): a fixed set of CPUs. Bare metal has neither."},
		{"Instance type", "how many cores and how much memory a guest gets."},
		{"Workload", "the application with its input and its metric."},
		{"Treatment", "one combination of platform, engine, provisioning, instance type, workload and its parameters."},
		{"Guest", "one live instance of a platform, made for one treatment and destroyed after it."},
		{"Trial", "one measured execution of the workload in a guest."},
		{"Warm-up", "an execution before the trials of a guest that is not counted; it also fills the page cache."},
		{"Round", "every treatment once, in random order. Both means of a ratio are taken from the same rounds, so that a host that drifts slows both."},
		{"95 % interval", "a range made so that, over many studies like this one, about 95 of 100 such ranges hold the true value."},
		{"Overhead ratio", "the mean on a platform over the mean on bare metal at the same instance type. 1.20 means that " + RatioMeans(means, "20 %") + ". Bare metal’s mean in each round is that of both its arms, the A/A control included."},
	}
	all = append(all, more...)
	return append(all, []Term{
		{"CHR", "container-to-host core ratio: the instance’s cores over the CPUs that the host had online. A container as large as its host has a CHR of 1."},
		{"PTO, PSO", "platform-type overhead, which a platform costs at any size; platform-size overhead, which it costs because its instance is small. Both are shares of bare metal’s time: 0.20 means 20 % longer."},
		{"Network", "how a guest is connected: bridge (behind a bridge, as the platform’s users have it), host (the network of what it runs on) or none."},
		{"Load", "what asks the service in a guest for its answers, from outside and on the host’s own CPUs; the same on every platform."},
		{"A/A check", "bare metal measured against itself under another name. The truth is known to be 1, so an interval that misses it shows a host too unsteady for small differences."},
		{"Isolation ladder", "from bare metal to a whole container one layer of isolation at a time. Each rung has all layers below it; its own cost is its mean over that of the rung below, in the rounds that both have."},
		{"Traced trial", "one that tracers observed. It feeds no mean and no ratio, because the tracers’ own cost is in it."},
		{"Account", "what a treatment’s overhead is attributed to, part by part, with what is unexplained as a part of its own, so that the sum is the measured overhead."},
		{"Ruler", "the small program inside every guest that starts the work and times it: the same one on every platform."},
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
