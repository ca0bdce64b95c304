package workload

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/lab/ruler"
	"tare/workloads"
)

// said runs the load of a shipped workload with a fake tool, and returns the load's output for the tool's.
func said(t *testing.T, of string, argv []string, tool, script string) ruler.Result {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{tool: "#!/bin/sh\n" + script, "load.sh": shippedFile(t, of, "load.sh")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs strings.Builder
	cmd := exec.Command("/bin/sh", append([]string{filepath.Join(dir, "load.sh")}, argv...)...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TARE_SCRATCH="+dir)
	cmd.Stdout, cmd.Stderr = &out, &errs
	r := ruler.Result{}
	if err := cmd.Run(); err != nil {
		r.Exit = cmd.ProcessState.ExitCode()
	}
	r.Stdout, r.Stderr = []byte(out.String()), []byte(errs.String())
	left, err := filepath.Glob(filepath.Join(dir, "load.*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the load left %q", left)
	}
	return r
}

func shippedFile(t *testing.T, of, name string) string {
	t.Helper()
	text, err := workloads.FS.ReadFile(of + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Percentiles cover all transactions that pgbench logged. A failed transaction is an error.
func TestWhatPgbenchSays(t *testing.T) {
	w, err := Find(workloads.FS, "postgres", ".")
	if err != nil {
		t.Fatal(err)
	}
	// pgbench 17 writes a log for each thread, with microseconds in the third column.
	const logs = `for a; do case $a in --log-prefix=*) p=${a#*=} ;; --rate=*) echo "rated ${a#*=}" >&2; exit 3 ;; esac; done
for i in 1 2 3 4 5; do echo "0 $i ${i}000 0 1700000000 12"; done >$p.10
for i in 1 2 3 4; do echo "1 $i 10000 0 1700000000 12 3"; done >$p.10.1
`
	const tail = `cat <<'END'
pgbench (17.6 (Debian 17.6-0+deb13u1))
transaction type: <builtin: TPC-B (sort of)>
number of failed transactions: 0 (0.000%)
latency average = 6.111 ms
initial connection time = 6.218 ms
tps = 812.345678 (without initial connection time)
END
`
	argv := []string{"198.18.0.1", "5432", "tpcb", "2", "1"}
	r := said(t, "postgres", argv, "pgbench", logs+tail)
	mean, also, cause := w.Figures(r)
	if cause != nil || mean != 0.055/9 && (mean < 0.0061111 || mean > 0.0061112) || also["p50"] != 0.005 || also["p95"] != 0.010 ||
		also["transactions_per_second"] != 812.346 || also["requests"] != 9 || also["errors"] != 0 {
		t.Errorf("%g s, %v, %v; %s", mean, also, cause, r.Stderr)
	}
	if r := said(t, "postgres", append(argv, "50"), "pgbench", logs+tail); !strings.Contains(string(r.Stderr), "rated 50") {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	// Clients that took a whole second to connect had no time for a transaction.
	const connecting = `for a; do case $a in --time=4) time=enough ;; --log-prefix=*) p=${a#*=} ;; esac; done
if [ -z "${time:-}" ]; then : >$p.9; echo 'number of failed transactions: 0 (NaN%)'; exit; fi
`
	r = said(t, "postgres", argv, "pgbench", connecting+logs+tail)
	if _, also, cause := w.Figures(r); cause != nil || also["requests"] != 9 {
		t.Errorf("%v, %v; %s", also, cause, r.Stderr)
	}
	for _, c := range []struct{ script, want string }{
		{logs + `echo "0 6 failed 0 1700000000 12" >>$p.10` + "\n" + tail, "1 of 10 transactions failed"},
		{"echo 'pgbench: error: connection to server failed' >&2; exit 1\n", "pgbench: failed (exit status 1): pgbench: error: connection to server failed"},
		{logs + "echo done\n", "pgbench: printed no rate: done"},
		{`for a; do case $a in --log-prefix=*) : >${a#*=}.1 ;; esac; done` + "\n" + tail, "pgbench: no transaction succeeded"},
	} {
		r := said(t, "postgres", argv, "pgbench", c.script)
		failed := Failure(r)
		if failed == nil {
			_, _, failed = w.Figures(r)
		}
		if failed == nil || !strings.Contains(string(r.Stderr), c.want) {
			t.Errorf("%s: %v: %s", c.want, failed, r.Stderr)
		}
	}
}

// The load reads redis-benchmark's columns, and refuses other columns.
func TestWhatRedisBenchmarkSays(t *testing.T) {
	w, err := Find(workloads.FS, "redis", ".")
	if err != nil {
		t.Fatal(err)
	}
	const head = `echo '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"'` + "\n"
	argv := []string{"198.18.0.1", "6379", "set", "20000", "50", "1", "64", "1000"}
	r := said(t, "redis", argv, "redis-benchmark", head+`echo '"SET","24937.66","1.021","0.064","0.471","3.015","9.015","29.023"'`+"\n")
	rate, also, cause := w.Figures(r)
	if cause != nil || rate != 24937.66 || also["mean"] != 0.001021 || also["p50"] != 0.000471 || also["p95"] != 0.003015 || also["p99"] != 0.009015 {
		t.Errorf("%g, %v, %v; %s", rate, also, cause, r.Stderr)
	}
	for _, c := range []struct{ script, want string }{
		{"echo 'Could not connect to Redis at 198.18.0.1:6379: Connection refused' >&2; exit 1\n", "redis-benchmark failed (exit status 1): Could not connect"},
		{head, "redis-benchmark printed no figures"},
		{head + `echo '"SET","0.00","0","0","0","0","0","0"'` + "\n", "redis-benchmark printed no figures"},
	} {
		r := said(t, "redis", argv, "redis-benchmark", c.script)
		if Failure(r) == nil || !strings.Contains(string(r.Stderr), c.want) {
			t.Errorf("%s: %s%s", c.want, r.Stdout, r.Stderr)
		}
	}
}
