package words

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
)

// A folder of another version, or a damaged one, must not stop a report.
func TestMessagesThatHaveNoSentence(t *testing.T) {
	for _, x := range []struct {
		m    *notebook.Message
		want string
	}{
		{nil, ""},
		{notebook.TextMessage("disk full"), "disk full"},
		{notebook.Say("of-guest", "guest", 1234567, "cause", notebook.TextMessage("disk full")), "guest 1234567: disk full"},
		{notebook.Say("of-guest", "guest", 2, "cause", notebook.Say("of-guest", "guest", 3, "cause", "x")), "guest 2: guest 3: x"},
		{notebook.Say("of-guest", "guest", 2), "of-guest guest=2"},
		{notebook.Say("of-guest", "guest", 2, "cause", 3), "of-guest cause=3 guest=2"},
		{notebook.Say("from-the-future", "n", 2), "from-the-future n=2"},
		{&notebook.Message{}, ""},
	} {
		if got := Message(x.m); got != x.want {
			t.Errorf("%v: %q, want %q", x.m, got, x.want)
		}
	}
}

// The sentences of the core's messages, as folders of the first format hold them.
func TestSentencesOfMessages(t *testing.T) {
	say := notebook.Say
	exit := say("exit", "status", 3, "said", "no such file")
	for _, x := range []struct {
		m    *notebook.Message
		want string
	}{
		{exit, "exit status 3: no such file"},
		{say("exit", "status", 3, "said", ""), "exit status 3"},
		{say("signal", "signal", "SIGSEGV", "said", ""), "killed by SIGSEGV"},
		{say("timed-out", "after", 1500*time.Millisecond, "said", "at work"), "killed after 1.5s, the time it was given: at work"},
		{say("out-of-memory", "signal", "SIGKILL"), "out of memory: the kernel killed it (SIGKILL)"},
		{say("out-of-memory-in-part", "status", 1, "said", "fork failed"), "out of memory: the kernel killed one of its processes (exit status 1): fork failed"},
		{say("host-out-of-memory", "processes", 2, "cause", "the guest is gone"), "out of memory: the host's kernel killed 2 of its processes: the guest is gone"},
		{say("device-stuck", "cause", say("timed-out", "after", time.Second, "said", ""), "devices", "gpu=0"), "killed after 1s, the time it was given; if a kernel of gpu=0 never returned, the device may have to be reset"},
		{say("checking", "cause", exit), "checking its output: exit status 3: no such file"},
		{say("wrong-output", "cause", exit), "its output is wrong: exit status 3: no such file"},
		{say("output-cut", "kib", 1024), "it printed more than 1024 KiB, the limit, so its figures may be cut off"},
		{say("nothing-matches", "expression", `a=(\S+)`, "metric", "x", "there", say("printed-last", "line", "bye")), `nothing in its output matches "a=(\\S+)", the expression of x: the last of it is "bye"`},
		{say("no-number-matches", "metric", "x", "text", "-2", "expression", "(.*)"), `its x is "-2" by "(.*)": must be a number of zero or more`},
		{say("no-line", "key", "n", "there", say("printed-nothing")), `it printed no line "n" with a number: it printed nothing`},
		{say("no-number", "key", "n", "line", "n=nan"), `it printed no "n" that is a number of zero or more: "n=nan"`},
		{say("no-figure", "key", "p99", "line", `{"p99":null}`), `it printed no "p99" that is a number of zero or more: {"p99":null}`},
		{say("no-csv", "error", "wrong number of fields", "there", say("printed-last", "line", "1")), `its output must be comma-separated values: wrong number of fields; the last of it is "1"`},
		{say("no-csv-rows", "there", say("printed-last", "line", "a,b")), `its output must be comma-separated values, with a line of names and at least one of numbers: the last of it is "a,b"`},
		{say("no-column", "key", "speed", "columns", "time,rate"), `its output has no column "speed", but "time,rate"`},
		{say("no-number-in-column", "key", "rate", "text", "slow"), `"rate" is "slow" in the last line of its output: must be a number of zero or more`},
		{say("no-json", "error", "unexpected EOF", "there", say("printed-last", "line", "{")), `its output must be one JSON document: "unexpected EOF"; the last of it is "{"`},
		{say("no-json-line", "line", "mean 0.1"), `its output must end with a line that is a JSON object of numbers, not "mean 0.1"`},
		{say("no-number-at", "key", "a.1", "there", say("json-list", "where", "a", "items", 1)), `its output has no "a.1" that is a number of zero or more: "a" is a list of 1`},
		{say("no-number-at", "key", "a.1", "there", say("json-object", "where", "a", "names", "b, c")), `its output has no "a.1" that is a number of zero or more: "a" has "b, c"`},
		{say("no-number-at", "key", "a", "there", say("json-value", "where", "a", "value", "-1")), `its output has no "a" that is a number of zero or more: "a" is "-1"`},
		{say("requests-failed", "requests", 7, "said", "7 of 9: connection reset"), "7 of its requests failed: 7 of 9: connection reset"},
		{say("of-guest-of", "guest", 3, "of", 4, "cause", exit), "guest 3 of 4: exit status 3: no such file"},
		{say("no-guest", "cause", say("diagnosed", "cause", "no hello", "diagnosis", "the kernel panicked")), "no guest: no hello (the kernel panicked)"},
		{say("no-room", "left_mib", 200, "kept_mib", 100, "each_mib", 150, "guests", 5), "the host has 200 MiB of memory left and keeps 100; a guest takes about 150, so 5 such guests fit"},
		{say("guest-failed-before"), "not run: its guest had already failed"},
		{say("ruler-silent", "cause", "EOF"), "the ruler did not answer: EOF"},
		{say("limits-unread", "cause", "EOF"), "its limits cannot be read: EOF"},
		{say("not-booted", "cause", "EOF"), "its system did not boot: EOF"},
		{say("work-ended-at-once", "cause", exit), "its work ended at once: exit status 3: no such file"},
		{say("no-address"), "its service has no address: no network connects the guest with the load"},
		{say("no-load-place", "cause", "EOF"), "no place for its load: EOF"},
		{say("of-load-place", "cause", "EOF"), "its load's place: EOF"},
		{say("warming", "cause", "EOF"), "warming its service: EOF"},
		{say("service-ended", "cause", "EOF"), "its service ended: EOF"},
		{say("service-ended-in-warm-up", "cause", "EOF"), "its service ended during its warm-up: EOF"},
		{say("service-ended-in-start", "cause", say("service-exited", "said", "")), "its service ended before it was ready: exit status 0; a service stays in the foreground; it said: nothing"},
		{say("service-not-ready", "within", 2*time.Minute, "answer", exit, "said", "still starting"), "its service was not ready in 2m0s: the last request gave: exit status 3: no such file; the service said: still starting"},
		{say("service-not-ready", "within", 2*time.Minute, "answer", nil, "said", ""), "its service was not ready in 2m0s: the last request gave: nothing; the service said: nothing"},
		{say("service-ended-under-load", "guest", 2, "cause", "EOF"), "the service of guest 2 ended under its load: EOF"},
		{say("load-failed", "guest", 2, "cause", "EOF"), "the load of guest 2: EOF"},
		{say("clock-drifted", "from_s", 0.05, "to_s", -7200, "in_s", time.Second), "the clock of the load's machine drifted or was set: it went from 0.050 s to -7200.000 s ahead of this host's in 1.000 s; check its time synchronisation (NTP)"},
		{say("no-seats", "cause", "EOF"), "its neighbours have no CPUs: EOF"},
		{say("of-neighbour", "neighbour", 2, "cause", "EOF"), "neighbour 2: EOF"},
		{say("of-neighbour-of", "neighbour", 2, "of", 3, "cause", "EOF"), "neighbour 2 of 3: EOF"},
		{say("neighbour-ended", "neighbour", 2, "cause", "EOF"), "neighbour 2 ended: EOF"},
		{say("neighbours-unread", "cause", "EOF"), "what its neighbours do cannot be read: EOF"},
		{say("neighbour-idle", "neighbour", 2, "of", 3, "cause", say("did-nothing")), "neighbour 2 of 3 was not busy: it neither ran nor moved a byte"},

		{say("moved-little", "bytes", 4096, "in_s", time.Second), "it moved 4096 bytes to and from disks in 1 s"},
		{say("ran-little", "ran_s", 0.12345, "waited_s", 0.0, "of_s", time.Second, "cores", 0.5), "it ran for 0.123 s and waited in the run queue for 0 s, of 1 s on 0.5 cores"},
		{say("of-load", "cause", say("left-cgroup", "cpus", "1")), "its load: one of its processes left the cgroup that confines it to CPUs 1"},

		{say("cpu-set-changed", "cpus", "1"), "its CPU set was changed or removed while it ran, so it could use other CPUs than 1"},
		{say("other-cpus-used", "used_s", 0.25, "cpus", "1"), "it used 0.25 s of CPU time outside CPUs 1"},

		{say("too-much-cpu-time", "cpus", "1"), "it used more CPU time than CPUs 1 have in that time"},
		{say("cpus-unproven", "cpus", "1", "why", say("cpus-online-now", "cpus", "0-1")), "no proof that it stayed on CPUs 1: the host has CPUs 0-1 online now"},

		{say("prepared-for-little", "label", "w{n=60}", "share", 0.0112, "trials", 23, "chosen", true, "param", "n", "length", 1778, "fair", 0.2),
			"w{n=60}: its runs are 1.1 % of the time that its guests take; 23 in a guest (trials: 23, or --precision, with which Tare chooses) or longer work (n: 1778) would make it 20 %"},
		{say("prepared-for-little", "label", "w", "share", 0.022, "trials", 12, "chosen", false, "param", "", "length", nil, "fair", 0.2),
			"w: its runs are 2.2 % of the time that its guests take; 12 in a guest (trials: 12) would make it 20 %"},
		{say("prepared-for-little", "label", "w", "share", 2.8e-10, "trials", nil, "chosen", true, "param", "n", "length", 3, "fair", 0.2),
			"w: its runs are 2.8e-08 % of the time that its guests take; longer work (n: 3) would make it 20 %"},
		{say("prepared-for-little", "label", "w", "share", 2.8e-10, "trials", nil, "chosen", true, "param", "n", "length", nil, "fair", 0.2),
			"w: its runs are 2.8e-08 % of the time that its guests take"},

		{say("trials-vary", "label", "w", "spread", 0.15, "width", 0.0601, "wanted", 0.006, "margin", 0.01, "rounds", 40, "advice", say("length-would-do", "param", "n", "length", "600", "then", nil)),
			"w: its runs vary by 15 % on bare metal; at the end of the study ratios to it would be known to about ±6 %, not ±0.6 %, which the margin of 1 % needs; n: 600 would be enough; about 40 rounds would be enough"},
		{say("trials-vary", "label", "w", "spread", 0.15, "width", 0.06, "wanted", 0.006, "margin", 0, "rounds", 0, "advice", say("length-chosen", "param", "n", "length", "600", "asked", "60", "then", 0.012)),
			"w: its runs vary by 15 % on bare metal; at the end of the study ratios to it would be known to about ±6 %, not ±0.6 %; n is 600 here instead of 60, for about ±1.2 %"},

		{say("length-would-do", "param", "n", "length", "600", "then", 0.012), "n: 600 would give about ±1.2 %"},

		{say("longer-hardly-helps"), "longer work would hardly help, because the host's noise changes slowly"},
		{say("longer-would-bring", "then", 0.05, "times", 10), "10 times the length would give about ±5 %"},

		{say("nothing-compared", "rounds", 2, "minutes", 3), "nothing can be compared: an interval needs 2 rounds; a time budget that is 3 min longer would be enough"},
		{say("given-up", "treatment", "w cn", "rounds", 2, "cause", exit), "w cn: stopped after 2 rounds in which every run failed: exit status 3: no such file"},

		{say("counter-fell", "figure", "lo.sent_bytes", "from", "network net:[1]", "was", 220, "is", 100), "lo.sent_bytes of network net:[1] fell from 220 to 100"},
		{say("counter-gone", "from", "cpu.stat"), "cpu.stat existed before the run but not after it"},

		{say("times-in-steps-by-cpu", "figures", []string{"interrupt_s", "steal_s"}, "step", 10*time.Millisecond), "interrupt_s and steal_s in steps of 10ms for each CPU"},
		{say("part-left-out", "what", "stacks", "bytes", 2<<20, "most", 1<<20), "its stacks were left out: with them the answer has 2097152 bytes; the limit is 1048576"},
		{say("tracer-not-attached", "on", "sched_switch", "cause", "device busy"), "it cannot attach to sched_switch: device busy"},
	} {
		if got := Message(x.m); got != x.want {
			t.Errorf("%v:\n%s, want\n%s", x.m, got, x.want)
		}
	}
}

// The text around an error that carries a message is kept.
func TestErrorsThatAreMessages(t *testing.T) {
	says := &notebook.Error{Says: notebook.Say("no-seats", "cause", "EOF")}
	for err, want := range map[error]string{
		errors.New("disk full"): "disk full",
		says:                    "its neighbours have no CPUs: EOF",
		fmt.Errorf("workload w: %w (a hint)", says): "workload w: its neighbours have no CPUs: EOF (a hint)",
	} {
		if got := Error(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReasonsOneAfterTheOther(t *testing.T) {
	large := notebook.Say("too-much-memory", "memory", int64(3<<29), "has", int64(4<<30))
	why := notebook.Several([]*notebook.Message{large, notebook.TextMessage("no crun"), notebook.Say("more-reasons", "reasons", 2)})
	const want = "study s: nothing but bare metal can be measured here: it needs 1.5 GB of memory; the host has 4.0 GB and keeps half a GB; " +
		"no crun; and 2 more reasons; `sudo tare doctor` says what this host supports and how to get the rest"
	if got := Message(notebook.Say("nothing-to-measure", "study", "s", "only", "", "bare", true, "why", why)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if notebook.Several(nil) != nil {
		t.Error("no reasons are a message")
	}
}

// FuzzMessage: whatever a folder has instead of a message, there is a sentence, and what is written of it reads the same again.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`"disk full"`, `{}`, `{"code":"text","args":{"text":5}}`, `{"code":"exit","args":{"said":[1,{"code":"exit"}],"status":{"x":{"y":1}}}}`,
		`{"code":"of-guest","args":{"guest":2,"cause":{"code":"text","args":{"text":"{{.}}"}}}}`, `{"code":"timed-out","args":{"after":1e300}}`,
		`{"code":"times-in-steps","args":{"figures":["a","b"],"step":-0.5}}`, `{"code":"memory-withheld","args":{"left":1e18,"withheld":"x","missing":null}}`,
		`{"code":"trials-vary","args":{"label":"a","spread":1,"width":2,"wanted":3,"margin":4,"advice":"b","rounds":5}}`, `{"code":"network","args":{"mode":{"code":"b"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read := func(text []byte) (m *notebook.Message, err error) {
			err = json.Unmarshal(text, &m)
			return m, err
		}
		m, err := read(text)
		if err != nil {
			return
		}
		Message(m)
		Message(data.Bounded(m))
		for range 2 { // JSON that is not a message becomes one when it is read the first time
			if text, err = json.Marshal(m); err != nil {
				t.Fatal(err)
			}
			if m, err = read(text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		again, err := json.Marshal(m)
		if err != nil || string(again) != string(text) {
			t.Errorf("%s, %v, want %s", again, err, text)
		}
		if b := data.Bounded(m); !data.Bounded(b).Equal(b) {
			t.Errorf("bounded twice: %v, want %v", data.Bounded(b), b)
		}
	})
}
