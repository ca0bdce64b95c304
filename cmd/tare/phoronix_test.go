//go:build linux

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A profile in the layout of the Phoronix Test Suite is imported and run, on bare metal and in a container: a C program that is compiled once, with an option, and two figures.
func TestAProfileOfThePhoronixTestSuite(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	const source = `#include <stdio.h>
#include <stdlib.h>
int main(int n, char **arg) {
	double sum = 0;
	for (long i = 1; i <= atol(arg[2]); i++) sum += 1.0 / i;
	printf("Sum of %s terms\n  %s   %.3f terms\n", arg[2], arg[1], sum);
	printf("Started by %s %s: %d arguments\n", arg[3], arg[4], n - 1);
	return 0;
}
`
	for name, text := range map[string]string{
		"harmonic-1.0.0/test-definition.xml": `<?xml version="1.0"?>
<PhoronixTestSuite>
  <TestInformation><Title>Harmonic</Title><AppVersion>1.0</AppVersion><ResultScale>Terms</ResultScale><Proportion>HIB</Proportion></TestInformation>
  <TestProfile><SupportedPlatforms>Linux</SupportedPlatforms><ExternalDependencies>build-utilities</ExternalDependencies></TestProfile>
  <TestSettings>
    <Default><Arguments>-n</Arguments><PostArguments>end</PostArguments></Default>
    <Option><DisplayName>Terms</DisplayName><Identifier>terms</Identifier><Menu>
      <Entry><Name>Few</Name><Value>10</Value></Entry><Entry><Name>Many</Name><Value>10000000</Value></Entry>
    </Menu></Option>
  </TestSettings>
</PhoronixTestSuite>`,
		"harmonic-1.0.0/results-definition.xml": `<PhoronixTestSuite>
  <ResultsParser><OutputTemplate>  -n   #_RESULT_# terms</OutputTemplate></ResultsParser>
  <ResultsParser><OutputTemplate>Started by end 1: #_RESULT_# arguments</OutputTemplate><LineHint>Started by</LineHint><ResultScale>Arguments</ResultScale></ResultsParser>
</PhoronixTestSuite>`,
		"harmonic-1.0.0/downloads.xml": fmt.Sprintf(`<PhoronixTestSuite><Downloads><Package><URL>http://example.org/harmonic.c</URL><SHA256>%x</SHA256></Package></Downloads></PhoronixTestSuite>`, sha256.Sum256([]byte(source))),
		"harmonic-1.0.0/install.sh":    "#!/bin/bash\ncc -O1 -o sum harmonic.c || exit 1\necho '#!/bin/sh\n./sum \"$@\" $NUM_CPU_CORES >$LOG_FILE' > harmonic\nchmod +x harmonic\n",
		"downloads/harmonic.c":         source,
		"study.yaml": `name: harmonic
workloads: [{name: ./imported, params: {terms: [Many]}}]
platforms: [{platform: bm}, {platform: cn, engines: [crun|runc], provisioning: [vanilla]}]
instances: [1/512MB]
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`,
	} {
		file := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, errs, status := h.run("workload", "import", "harmonic-1.0.0", "--out", "imported"); status == 0 || !strings.Contains(errs, "harmonic.c is missing: fetch it from http://example.org/harmonic.c") {
		t.Errorf("without what it downloads: exit status %d, %s", status, errs)
	}
	if said := h.must("workload", "import", "harmonic-1.0.0", "--files", "downloads", "--out", "imported"); !strings.Contains(said, "imported is the workload harmonic: Harmonic 1.0.") {
		t.Errorf("it said %q", said)
	}
	if _, errs, status := h.run("workload", "import", "harmonic-1.0.0", "--files", "downloads", "--out", "imported"); status == 0 || !strings.Contains(errs, "imported: file exists") {
		t.Errorf("onto a folder: exit status %d, %s", status, errs)
	}
	h.must("run", "./study.yaml", "--out", "R")
	var rows []struct {
		Platform string
		Mean     *float64
		Better   string
		Failed   int
		Also     []struct{ Mean *float64 } `json:"secondary_metrics"`
	}
	decodeRows(t, h.must("summary", "R", "--format", "json"), &rows)
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r.Platform] = true
		if r.Mean == nil || *r.Mean != 16.695 || r.Better != "higher" || r.Failed != 0 || len(r.Also) != 1 || r.Also[0].Mean == nil || *r.Also[0].Mean != 4 {
			t.Errorf("%+v", r)
		}
	}
	if !seen["bm"] || !seen["cn"] {
		t.Errorf("it was run on %v", seen)
	}
}
