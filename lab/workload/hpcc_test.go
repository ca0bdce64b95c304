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

// recordedHPCC is the output of HPCC 1.5.0 of Debian 13 for a problem of order 256 with two processes.
func recordedHPCC(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/hpcc.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The check accepts HPCC's results if they are complete, belong to the requested problem and passed HPCC's own checks. Otherwise it says what is wrong.
func TestErrorsInHPCCsResults(t *testing.T) {
	text := recordedHPCC(t)
	check, err := workloads.FS.ReadFile("hpcc/check.sh")
	if err != nil {
		t.Fatal(err)
	}
	script, output := filepath.Join(t.TempDir(), "check.sh"), filepath.Join(t.TempDir(), "hpccoutf.txt")
	if err := os.WriteFile(script, check, 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(was, is string) string {
		if !strings.Contains(text, was) {
			t.Fatalf("HPCC's results have no %q", was)
		}
		return strings.Replace(text, was, is, 1)
	}
	for _, c := range []struct{ name, text, n, want string }{
		{"as recorded", text, "256", ""},
		{"of another order", text, "512", "HPL_N=256: must be 512"},
		{"nothing", "", "256", "hpcc wrote no results"},
		{"cut off", text[:len(text)/2], "256", "end before their summary does"},
		{"no success", with("Success=1", "Success=0"), "256", "Success=0: must be 1"},
		{"HPL's residual", with("0 tests completed and failed residual checks,", "1 tests completed and failed residual checks,"), "256", "HPCC's own check failed: "},
		{"PTRANS's residual", with("0 tests completed and failed residual checks.", "1 tests completed and failed residual checks."), "256", "HPCC's own check failed: "},
		{"HPL skipped", with("1 tests completed and passed residual checks,", "0 tests completed and passed residual checks,"), "256", "HPCC does not report small enough residuals for both HPL and PTRANS"},
		{"errors of RandomAccess", with("Found 0 errors in 65536 locations (passed)", "Found 900 errors in 65536 locations (failed)"), "256", "Found 900 errors"},
		{"a node's errors", with("Node(s) with error 0", "Node(s) with error 1"), "256", "HPCC's own check failed: Node(s) with error 1"},
	} {
		if err := os.WriteFile(output, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), "sh", script, output, c.n, "2").CombinedOutput()
		if (err == nil) != (c.want == "") || !strings.Contains(string(said), c.want) {
			t.Errorf("%s: %v, %q; want %q", c.name, err, said, c.want)
		}
	}
}

// HPCC's summary has every figure of the paper.
func TestFiguresOfHPCC(t *testing.T) {
	_, summary, _ := strings.Cut(recordedHPCC(t), "Begin of Summary section.\n")
	summary, _, _ = strings.Cut(summary, "End of Summary section.")
	w, err := Find(workloads.FS, "hpcc", ".")
	if err != nil {
		t.Fatal(err)
	}
	v, also, cause := w.Figures(ruler.Result{Stdout: []byte(summary + "stream_array_of_cache=0.5\n")})
	if cause != nil || !(v > 0) || len(also) != len(w.Also) {
		t.Fatalf("HPL %v, %d of %d other figures; %s", v, len(also), len(w.Also), cause)
	}
	for name, v := range also {
		if !(v > 0) {
			t.Errorf("%s is %v", name, v)
		}
	}
}
