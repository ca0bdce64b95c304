package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"tare/internal/require"
	"tare/lab/fleet/kube"
)

const (
	units    = "../../scripts/packaging/systemd"
	regularD = "../../docs/regular.md"
	cronJob  = "../../examples/cronjob.yaml"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the fenced blocks of a document in a language.
func blocks(t *testing.T, path, language string) (all []string) {
	t.Helper()
	for _, b := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(readFile(t, path), -1) {
		all = append(all, b[1])
	}
	return all
}

// systemd knows every line of the service and of the timer, with the drop-ins that docs/regular.md shows. Their commands are Tare's.
func TestUnitsThatRunRegularly(t *testing.T) {
	service := readFile(t, filepath.Join(units, "tare-regular@.service"))
	defaults := strings.NewReplacer("${STUDY}", "quick", "$FLAGS", "--time-budget 20m", "${METRICS}", "/var/lib/tare-history", "%i", "quick")
	if set := `STUDY=%i FLAGS="--time-budget 20m" METRICS=/var/lib/tare-history`; !strings.Contains(service, set) {
		t.Errorf("does not set %s", set)
	}
	commands := regexp.MustCompile(`(?m)^Exec(Start|StopPost)=/usr/bin/tare (.*)$`).FindAllStringSubmatch(service, -1)
	if len(commands) != 2 || strings.Count(service, "\nExec") != 2 {
		t.Fatalf("%q", commands)
	}
	for _, c := range commands {
		if err := parsed(strings.Fields(defaults.Replace(c[2]))); err != nil {
			t.Errorf("%s: %v", c[0], err)
		}
	}
	// What would put a filter of system calls or a mount namespace between bare metal and the host.
	if m := regexp.MustCompile(`(?m)^(Protect|Private|Restrict|SystemCall|Lock|MemoryDeny|NoNew|ReadOnly|Inaccessible|Dynamic|Root)\w*=`).FindString(service); m != "" {
		t.Errorf("%s changes what is measured", m)
	}
	require.Program(t, "systemd-analyze")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	of := []string{write("tare-regular@quick.service", strings.ReplaceAll(service, "/usr/bin/tare", program)), write("tare-regular@quick.timer", readFile(t, filepath.Join(units, "tare-regular@.timer")))}
	said := 0
	for _, b := range blocks(t, regularD, "ini") {
		switch {
		case strings.HasPrefix(b, "[Timer]"):
			write("tare-regular@quick.timer.d/doc.conf", b)
		case strings.HasPrefix(b, "[Service]"):
			write("tare-regular@quick.service.d/doc.conf", strings.ReplaceAll(b, "/usr/bin/curl", program))
		default: // a file of variables
			continue
		}
		said++
	}
	if said != 2 {
		t.Errorf("%s shows %d drop-ins", regularD, said)
	}
	for _, unit := range of { // what it does not know, it warns of
		if out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", unit, err, out)
		}
	}
}

// Kubernetes' own types know each key of the CronJob. Its commands are Tare's, and its pod sees the node.
func TestCronJob(t *testing.T) {
	documents := strings.Split(readFile(t, cronJob), "\n---\n")
	if len(documents) != 2 {
		t.Fatalf("%d documents", len(documents))
	}
	var space corev1.Namespace
	var job batchv1.CronJob
	for i, into := range []any{&space, &job} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	if job.Namespace != space.Name || job.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		t.Errorf("%+v", job)
	}
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	c := pod.Containers[0]
	if !pod.HostPID || !pod.HostNetwork || !pod.HostIPC || !*c.SecurityContext.Privileged || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%+v", pod)
	}
	script := strings.NewReplacer(`"`, "", "$STUDY", c.Env[0].Value).Replace(c.Args[0])
	for line := range strings.Lines(script) {
		line, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), "&"), " ||")
		if words := strings.Fields(line); len(words) > 0 && words[0] == "tare" {
			if words[1] == "on-node" { // a folder of the node, as the pod sees it, and then a program there
				words = words[4:]
			}
			if err := parsed(words[1:]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// The chart's templates, filled with its values, and the plain manifest are the rights of kube.Operator and the CronJob of the examples.
func TestHelmChart(t *testing.T) {
	const chart = "../../examples/helm"
	var values map[string]any
	if err := yaml.Unmarshal([]byte(readFile(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	filled := func(name string) string {
		t.Helper()
		parsed, err := template.New(name).Funcs(template.FuncMap{"quote": strconv.Quote}).Option("missingkey=error").Parse(readFile(t, chart+"/templates/"+name))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := parsed.Execute(&b, map[string]any{"Values": values}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	roles, err := kube.Operator("tare", "tare-operators")
	if err != nil {
		t.Fatal(err)
	}
	if got := filled("operator.yaml"); got != roles {
		t.Errorf("the rights are\n%s\nwant\n%s", got, roles)
	}
	if got, want := readFile(t, "../../examples/operator.yaml"), filled("namespace.yaml")+"---\n"+roles; got != want {
		t.Errorf("examples/operator.yaml is\n%s\nwant\n%s", got, want)
	}
	var space corev1.Namespace
	if err := yaml.UnmarshalStrict([]byte(filled("namespace.yaml")), &space); err != nil || space.Name != "tare" || space.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Errorf("%+v, %v", space, err)
	}
	if got := filled("regular.yaml"); strings.TrimSpace(got) != "" {
		t.Errorf("without a node there is a CronJob:\n%s", got)
	}
	values["regular"].(map[string]any)["node"] = "worker-1"
	var got, want batchv1.CronJob
	if err := yaml.UnmarshalStrict([]byte(filled("regular.yaml")), &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(strings.Split(readFile(t, cronJob), "\n---\n")[1]), &want); err != nil {
		t.Fatal(err)
	}
	if want.Namespace = "tare"; !reflect.DeepEqual(got, want) {
		t.Errorf("the CronJob is\n%+v\nwant\n%+v", got, want)
	}
}
