package workload

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/require"
)

// gpuProgram compiles the workload's program, for the OpenCL driver that computes on the CPU, and gives it with the folder of its kernels.
func gpuProgram(t *testing.T) (program, folder string) {
	t.Helper()
	_, err := os.Stat("/etc/OpenCL/vendors/pocl.icd")
	require.That(t, err == nil, "OpenCL on the CPU (apt-get install pocl-opencl-icd ocl-icd-opencl-dev)")
	dir := "../../workloads/gpu"
	program = filepath.Join(t.TempDir(), "gpu")
	args := []string{"-O2", "-Wall", "-Wextra", "-Werror", "-o", program}
	for _, name := range []string{"main.c", "opencl.c", "lud.c", "stencil.c", "particles.c", "lenet.c"} {
		args = append(args, filepath.Join(dir, name))
	}
	if said, err := exec.CommandContext(t.Context(), "gcc", append(args, "-lOpenCL", "-lm")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, said)
	}
	return program, dir
}

// onDevice runs it with its own cache of compiled kernels.
func onDevice(t *testing.T, env []string, program string, args ...string) (figures map[string]float64, errs string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(append(os.Environ(), "POCL_CACHE_DIR="+t.TempDir()), env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, said.String(), exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &figures); err != nil {
		t.Fatalf("%q: %v; %s", out, err, said.String())
	}
	return figures, said.String(), 0
}

// Each application's results are the CPU's, and its account is all of its time.
func TestApplicationsOnADevice(t *testing.T) {
	program, folder := gpuProgram(t)
	for app, size := range map[string]string{"lud": "75", "particle-filter": "1000", "stencil": "20", "lenet-inference": "3", "lenet-training": "3"} {
		t.Run(app, func(t *testing.T) {
			t.Parallel()
			f, errs, status := onDevice(t, nil, program, app, "pocl", "1", size, "2", folder)
			if status != 0 {
				t.Fatalf("exit status %d: %s", status, errs)
			}
			sum := 0.0
			for _, name := range []string{"opening", "compilation", "allocation", "copies", "launches", "waiting"} {
				if f[name] <= 0 {
					t.Errorf("%s is %g", name, f[name])
				}
				sum += f[name]
			}
			if math.Abs(sum-f["calls"]) > 1e-6 || math.Abs(sum+f["rest"]-f["time"]) > 1e-6 {
				t.Errorf("calls of %g s and a rest of %g s are %g s: %v", f["calls"], f["rest"], f["time"], f)
			}
			if f["kernels"] <= 0 || f["kernels"] > f["time"] || f["kernel_share"] <= 0 || f["kernel_share"] >= 1 || f["device_memory"] <= 0 || f["first_launch"] <= 0 || f["measuring"] > f["time"]/10 {
				t.Errorf("%v", f)
			}
		})
	}
}

// A device that computes wrongly is found out, and whatever fails is one line that says what.
func TestADeviceThatIsWrong(t *testing.T) {
	program, folder := gpuProgram(t)
	text, err := os.ReadFile(filepath.Join(folder, "applications.cl"))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(t *testing.T, from, to string) string {
		if strings.Count(string(text), from) != 1 {
			t.Fatalf("%q stands %d times in the kernels", from, strings.Count(string(text), from))
		}
		dir := t.TempDir()
		if err := errors.Join(os.CopyFS(dir, os.DirFS(folder)), os.WriteFile(filepath.Join(dir, "applications.cl"), []byte(strings.Replace(string(text), from, to, 1)), 0o600)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, c := range map[string]struct {
		app, size, driver string
		from, to          string // of the kernels
		env               []string
		want              string
	}{
		"lud":             {app: "lud", size: "75", from: "a[i * n + j] -= sum;", to: "a[i * n + j] -= 1.01f * sum;", want: "the device computed the factors["},
		"stencil":         {app: "stencil", size: "20", from: "side * (from[i - 1]", to: "side * (from[i]", want: "the device computed the cells["},
		"particle filter": {app: "particle-filter", size: "1000", from: "x[X] += 1 + 2.5f", to: "x[X] += 1.5f + 2.5f", want: "the device computed the disc's place"},
		"inference":       {app: "lenet-inference", size: "3", from: "out[Y * outs + X] = floor && sum < 0", to: "out[Y * outs + X] = floor && sum < 0.1f", want: "the device computed the answers["},
		"training":        {app: "lenet-training", size: "3", from: "int r = y - i + pad", to: "int r = y - i + pad + 1", want: "the device computed a layer's changes["},
		"no kernels":      {app: "lud", size: "20", from: "KERNEL lud_rest(", to: "KERNEL lud_other(", want: "lud_rest: OpenCL error -46"},
		"broken kernels":  {app: "lud", size: "20", from: "KERNEL lud_rest(", to: "KERNEL lud_rest(+", want: "the driver does not compile the kernels (OpenCL error -11)"},
		"no driver":       {app: "lud", size: "20", env: []string{"OCL_ICD_VENDORS=/no/such/folder/"}, want: "no OpenCL driver is installed"},
		"no GPU":          {app: "lud", size: "20", driver: "gpu", want: "no OpenCL driver for a GPU: there are Portable Computing Language"},
		"no memory":       {app: "stencil", size: "65536", want: "choose a smaller size"},
		"no size":         {app: "stencil", size: "-1", want: "size: small, usual, or: -1: a number from 1 to 65536 was expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder
			if c.from != "" {
				dir = changed(t, c.from, c.to)
			}
			driver := c.driver
			if driver == "" {
				driver = "pocl"
			}
			_, errs, status := onDevice(t, c.env, program, c.app, driver, "1", c.size, "1", dir)
			if status != 1 || !strings.Contains(errs, c.want) {
				t.Errorf("exit status %d, %q; want %q", status, errs, c.want)
			}
		})
	}
}
