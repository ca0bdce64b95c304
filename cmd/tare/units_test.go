//go:build linux

package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tare/notebook"
)

// A system is a whole Debian with systemd. Its command does not only wait until the system is up: it also observes units there.
const observedSystem = `name: observed
title: a Debian with systemd in which units are observed
image: {suite: bookworm, packages: [systemd-sysv, udev, jq]}
files: [tare, see.sh]
system: true
command: [/bin/sh, "{work}/see.sh"]
metric: {name: memory (PSS), unit: MiB}
`

// figuresFollow is the exit status of the command when its last line is its figures. Tare keeps the last line of a system's command only
// if the command fails, and at most 300 bytes of it.
const figuresFollow = 100

// Loading the BPF programs takes longer than the observation under emulation. So the script samples what the kernel counts of a unit all
// the time, and takes the difference over the time of the observation. A busy unit either runs or is kept from it. The sum of the two is
// therefore the time that passed between two samples, even if the script itself had to wait for the CPU.
const observedScript = `set -eu
until [ -S /run/systemd/private ]; do sleep 0.1; done # init gives no notice
state=$(systemctl is-system-running --wait) || {
	echo "the system is $state: $(systemctl --failed --no-legend --plain)" >&2
	exit 1
}
cp "$TARE_WORK/tare" /root/tare
chmod 755 /root/tare

# busy NAME PROPERTY...: a unit that is always ready to run
busy() {
	name=$1
	shift
	systemd-run -q --unit="$name" "$@" /bin/sh -c 'while :; do :; done'
}

# samples UNIT: the time, and for how long until then the unit has run, was kept from running, and was throttled, in seconds
samples() {
	group=/sys/fs/cgroup/system.slice/$1
	while :; do
		now=$(date +%s.%N)
		awk -v now="$now" '
			$1 == "usage_usec" { ran = $2 / 1e6 }
			$1 == "throttled_usec" { throttled = $2 / 1e6 }
			$1 == "some" { sub("total=", "", $5); kept = $5 / 1e6 }
			END { printf "[%.6f, %.6f, %.6f, %.6f]\n", now, ran, kept, throttled }' "$group/cpu.stat" "$group/cpu.pressure"
		sleep 0.4
	done
}

# see NAME UNIT: what Tare says of the unit that it finds by the name, and what the kernel says
see() {
	samples "$2" >"/root/$1.samples" &
	sampler=$!
	/root/tare observe "$1" --for 5s --format json >"/root/$1.json"
	# The last sample has to be of a time after the observation.
	n=$(wc -l <"/root/$1.samples")
	until [ "$(wc -l <"/root/$1.samples")" -gt $((n + 1)) ]; do sleep 0.1; done
	kill "$sampler"
	from=$(date -d "$(jq -r .at "/root/$1.json")" +%s.%N)
	jq -c --argjson from "$from" --slurpfile samples "/root/$1.samples" '
		def at($t): ([$samples[] | select(.[0] <= $t)] | last) as $a | (first($samples[] | select(.[0] > $t))) as $b
			| (($t - $a[0]) / ($b[0] - $a[0])) as $part | [range(1; 4) as $i | $a[$i] + $part * ($b[$i] - $a[$i])];
		def share($key): [.account[] | select(.key == $key).share.value] | add // 0;
		def short: . * 1000 | round / 1000;
		at($from) as $before | at($from + .seconds) as $after
		| {tier, (.target.kind): .target.name, quota: (.quota.cores // 0), ahead: [.ahead[:2][].name | split("/") | last | rtrimstr(".service")],
			tare: [share("user") + share("system") + share("stolen"), share("throttled") + share("core"), share("throttled") | short],
			kernel: [range(3) as $i | ($after[$i] - $before[$i]) / ($after[0] - $before[0] + $after[1] - $before[1]) | short]}' "/root/$1.json"
}

busy held -p CPUQuota=30%
held=$(see held.service held.service)
systemctl stop held
busy rival
busy crowded
crowded=$(see crowded crowded.service)
printf '{"held":%s,"crowded":%s}\n' "$held" "$crowded" >&2
exit 100
`

// unitSeen is which parts of the time a unit ran, was kept from running, and was throttled.
type unitSeen struct {
	Tier   int
	Unit   string
	Quota  float64
	Ahead  []string // the two who had the CPU for the longest time
	Tare   [3]float64
	Kernel [3]float64
}

// In a VM whose first process is systemd, units are found by their names, and their shares of the time are those that the kernel counts.
func TestSlowObservedUnitsInAVM(t *testing.T) {
	h := newHost(t)
	need(t, has("qemu-system-x86_64"), "qemu-system-x86_64 (qemu-system-x86)")
	h.write("observed/workload.yaml", observedSystem)
	h.write("observed/see.sh", observedScript)
	if err := os.Link(h.tare, filepath.Join(h.dir, "observed/tare")); err != nil {
		t.Fatal(err)
	}
	h.write("study.yaml", `name: units
workloads: [{name: ./observed}]
platforms: [{platform: vm, provisioning: [pinned]}]
instances: [1/1GB] # with two emulated CPUs the kernel of the VM hangs now and then
memory: {guests: [1]}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 5m}
allow_emulation: true
`)
	_, errs, _ := h.run("run", "./study.yaml", "--out", "R") // the command fails, see figuresFollow
	trials := h.trials("R")
	if len(trials) != 1 {
		t.Fatalf("%d trials: %s", len(trials), errs)
	}
	cause := trials[0].Failure
	for cause != nil && cause.Code != "exit" {
		cause, _ = cause.Args["cause"].(*notebook.Message)
	}
	if cause == nil || cause.Args["status"] != float64(figuresFollow) {
		t.Fatalf("%v: %s", trials[0].Failure, errs)
	}
	said, _ := cause.Args["said"].(string)
	t.Log(said)
	var seen struct{ Held, Crowded unitSeen }
	if err := json.Unmarshal([]byte(said), &seen); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	seen.Held.check(t, "held")
	seen.Crowded.check(t, "crowded")
	if ran := seen.Held.Tare[0]; seen.Held.Quota != 0.3 || ran < 0.2 || ran > 0.35 {
		t.Errorf("with a limit of 0.3 cores: limit %g, ran for %.3f of the time", seen.Held.Quota, ran)
	}
	// The other half of the CPU is for its rival, and Tare and the samples take from both.
	if ran := seen.Crowded.Tare[0]; seen.Crowded.Quota != 0 || ran < 0.2 || ran > 0.55 || !slices.Contains(seen.Crowded.Ahead, "rival") {
		t.Errorf("next to one as busy: limit %g, ran for %.3f of the time; %q had the CPU", seen.Crowded.Quota, ran, seen.Crowded.Ahead)
	}
}

// check compares what Tare says with what the kernel counted.
func (u unitSeen) check(t *testing.T, name string) {
	t.Helper()
	if u.Unit != name+".service" || u.Tier != notebook.TierEvents {
		t.Errorf("%s: unit %q, tier %d; want tier %d", name, u.Unit, u.Tier, notebook.TierEvents)
	}
	for i, c := range []struct {
		what  string
		apart float64
	}{
		{"ran", 0.05}, {"was kept from running", 0.05},
		{"was throttled", 0.1}, // the kernel counts a throttled time only when it ends
	} {
		if math.Abs(u.Tare[i]-u.Kernel[i]) > c.apart {
			t.Errorf("%s: Tare says that it %s for %.3f of the time, the kernel %.3f", name, c.what, u.Tare[i], u.Kernel[i])
		}
	}
}
