package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/internal/require"
)

// gpuProgram compiles the workload's program for the OpenCL driver that computes on the CPU. It returns the program and the folder of its kernels.
func gpuProgram(t *testing.T) (program, folder string) {
	t.Helper()
	_, err := os.Stat("/etc/OpenCL/vendors/pocl.icd")
	require.That(t, err == nil, "OpenCL on the CPU (apt-get install pocl-opencl-icd ocl-icd-opencl-dev)")
	dir := "../../workloads/gpu"
	return compiled(t, dir, "opencl", "-lOpenCL"), dir
}

// compiled is the workload's program, compiled for one of the interfaces to devices.
func compiled(t *testing.T, dir, language string, flags ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "gpu-"+language)
	args := []string{"-O2", "-Wall", "-Wextra", "-Werror", "-o", program}
	files := []string{"main.c", "lud.c", "stencil.c", "particles.c", "lenet.c", "level0.c", "level1.c", language + ".c"}
	if language == "cuda" {
		files = append(files, "records.c")
	}
	for _, name := range files {
		args = append(args, filepath.Join(dir, name))
	}
	if said, err := exec.CommandContext(t.Context(), "gcc", slices.Concat(args, flags, []string{"-lm"})...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, said)
	}
	return program
}

// onDevice runs the program with an empty cache of compiled kernels.
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

// calls are the kinds of calls in which an application waits.
var calls = []string{"opening", "compilation", "allocation", "copies", "launches", "waiting"}

// addsUp checks that an application's time breakdown sums to its time.
func addsUp(t *testing.T, f map[string]float64) {
	t.Helper()
	sum := 0.0
	for _, name := range calls {
		sum += f[name]
	}
	if math.Abs(sum-f["calls"]) > 1e-6 || math.Abs(sum+f["rest"]-f["time"]) > 1e-6 {
		t.Errorf("calls of %g s and a rest of %g s are %g s: %v", f["calls"], f["rest"], f["time"], f)
	}
}

// Each application computes the same results as the CPU, and its time breakdown sums to its time. SHOC levels also have their own figure.
func TestApplicationsOnADevice(t *testing.T) {
	program, folder := gpuProgram(t)
	for app, c := range map[string]struct{ size, figure string }{
		"lud": {"75", ""}, "particle-filter": {"1000", ""}, "stencil": {"20", ""}, "lenet-inference": {"3", ""}, "lenet-training": {"3", ""},
		"bus-down": {"1", "bandwidth"}, "bus-up": {"1", "bandwidth"}, "device-memory": {"1", "bandwidth"}, "peak-flops": {"1", "arithmetic"}, "launch-latency": {"50", "launch_latency"},
		"fft": {"3", "arithmetic"}, "gemm": {"50", "arithmetic"}, "md": {"100", "arithmetic"}, "spmv": {"150", "arithmetic"}, // not whole groups
		"reduction": {"37", "bandwidth"}, "scan": {"4099", "bandwidth"}, "sort": {"37", "bandwidth"}, "triad": {"37", "bandwidth"},
	} {
		t.Run(app, func(t *testing.T) {
			t.Parallel()
			f, errs, status := onDevice(t, nil, program, app, "pocl", "1", c.size, "2", folder)
			if status != 0 {
				t.Fatalf("exit status %d: %s", status, errs)
			}
			for _, name := range calls {
				if f[name] <= 0 {
					t.Errorf("%s is %g", name, f[name])
				}
			}
			addsUp(t, f)
			if f["kernels"] <= 0 || f["kernels"] > f["time"] || f["kernel_share"] <= 0 || f["kernel_share"] >= 1 || f["device_memory"] <= 0 || f["first_launch"] <= 0 || f["measuring"] > f["time"]/10 {
				t.Errorf("%v", f)
			}
			for _, name := range []string{"bandwidth", "arithmetic", "launch_latency"} {
				if v, has := f[name]; has != (name == c.figure) || has && v <= 0 {
					t.Errorf("%s is %g; its own figure is %q", name, v, c.figure)
				}
			}
			if f["launch_latency"] > (f["launches"]+f["waiting"])/100 { // of 50 launches, twice
				t.Errorf("%v", f)
			}
		})
	}
}

// The program detects a device that computes wrongly. Each failure is one line that says what failed.
func TestADeviceThatIsWrong(t *testing.T) {
	program, folder := gpuProgram(t)
	texts := map[string]string{}
	for _, name := range []string{"lud.cl", "stencil.cl", "particles.cl", "lenet.cl", "levels.cl"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	changed := func(t *testing.T, from, to string) string {
		dir, stands := t.TempDir(), 0
		err := os.CopyFS(dir, os.DirFS(folder))
		for name, text := range texts {
			if n := strings.Count(text, from); n > 0 {
				stands += n
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(text, from, to, 1)), 0o600))
			}
		}
		if stands != 1 || err != nil {
			t.Fatalf("%q occurs %d times in the kernels; %v", from, stands, err)
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
		"device memory":   {app: "device-memory", size: "1", from: "i < READS; i++", to: "i < READS - 1; i++", want: "the device computed the words' sums["},
		"bus up":          {app: "bus-up", size: "1", from: "k < READS && i < n", to: "k < READS && i < n - 1", want: "the device computed the words["},
		"peak flops":      {app: "peak-flops", size: "1", from: "i < steps; i++", to: "i < steps - 1; i++", want: "the device computed the chains["},
		"launch latency":  {app: "launch-latency", size: "50", from: "launches[0]++;", to: "launches[0] = 50;", want: "the device computed the launches[0] as 50, the CPU 51"},
		"fft":             {app: "fft", size: "3", from: "dr * c - di * s", to: "dr * c + di * s", want: "the device computed the transforms, "},
		"gemm":            {app: "gemm", size: "50", from: "k < TILE; k++", to: "k < TILE - 1; k++", want: "the device computed the product["},
		"md":              {app: "md", size: "100", from: "k < counts[X]; k++", to: "k < counts[X] - 1; k++", want: "the device computed the forces["},
		"reduction":       {app: "reduction", size: "37", from: "i < base + SUMMED;", to: "i < base + SUMMED - 1;", want: "the device computed the sum["},
		"scan":            {app: "scan", size: "37", from: "to[i] += sums[GROUP_X];", to: "to[i] += GROUP_X < 9 ? sums[GROUP_X] : 0;", want: "the device computed the sums[9216]"},
		"sort":            {app: "sort", size: "37", from: "unsigned int at = starts[item * groups + GROUP_X];", to: "unsigned int at = starts[item * groups + GROUP_X] ^ 1;", want: "the device computed the keys in order["},
		"spmv":            {app: "spmv", size: "1500", from: "i < starts[GROUP_X + 1];", to: "i < starts[GROUP_X + 1] - 1;", want: "the device computed the product with the vector["},
		"triad":           {app: "triad", size: "37", from: "b[X] + by * c[X]", to: "b[X] + c[X]", want: "the device computed the triad["},
		"no kernels":      {app: "lud", size: "20", from: "KERNEL lud_rest(", to: "KERNEL lud_other(", want: "lud_rest: OpenCL error -46"},
		"broken kernels":  {app: "lud", size: "20", from: "KERNEL lud_rest(", to: "KERNEL lud_rest(+", want: "the driver does not compile the kernels (OpenCL error -11)"},
		"no driver":       {app: "lud", size: "20", env: []string{"OCL_ICD_VENDORS=/no/such/folder/"}, want: "no OpenCL driver is installed"},
		"no GPU":          {app: "lud", size: "20", driver: "gpu", want: "no OpenCL driver for a GPU: the drivers are Portable Computing Language"},
		"a great size":    {app: "stencil", size: "65536", want: "size: 65536: must be at most 5792 cells wide"},
		"no size":         {app: "stencil", size: "-1", want: "size: small, usual, or: -1: must be a number from 1 to 65536"},
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

// standIn makes a driver that computes on the CPU, and the folder of the workload's files with its profiler. It returns the environment that the
// program needs.
func standIn(t *testing.T) (program, folder string, env []string) {
	t.Helper()
	_, err := exec.LookPath("g++")
	require.That(t, err == nil, "g++ (apt-get install g++)")
	const dir = "../../workloads/gpu"
	lib, folder := t.TempDir(), t.TempDir()
	driver := filepath.Join(lib, "libcuda.so.1")
	args := []string{"-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I" + dir, "-o", driver, "testdata/gpu/driver.cc"}
	if said, err := exec.CommandContext(t.Context(), "g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v: %s", err, said)
	}
	if err := errors.Join(os.Symlink(driver, filepath.Join(lib, "libnvidia-ml.so.1")), os.CopyFS(folder, os.DirFS(dir)), os.Symlink(driver, filepath.Join(folder, "libcupti.so.13"))); err != nil {
		t.Fatal(err)
	}
	return compiled(t, dir, "cuda", "-ldl"), folder, []string{"LD_LIBRARY_PATH=" + lib}
}

// The program calls NVIDIA's driver in the way that a stand-in for the driver accepts. With each build of the kernels, each application's results are
// right and its time breakdown sums to its time. The figures have the device's own times if the program records them.
func TestApplicationsByCUDA(t *testing.T) {
	program, folder, env := standIn(t)
	for app, size := range map[string]string{"lud": "75", "particle-filter": "1000", "stencil": "20", "lenet-inference": "3", "lenet-training": "3"} {
		for _, build := range []string{"device", "device,records", "ptx", "ptx,records", "many"} {
			f, errs, status := onDevice(t, env, program, app, build, "1", size, "2", folder)
			if status != 0 {
				t.Fatalf("%s, %s: exit status %d: %s", app, build, status, errs)
			}
			addsUp(t, f)
			if f["first_launch"] <= 0 || f["device_memory"] <= 0 {
				t.Errorf("%s, %s: %v", app, build, f)
			}
			if f["clock"] != 1.98e9 || f["temperature"] != 41 || f["power"] != 120.5 || f["throttled"] != 0 || f["others"] != 0 || f["rate"] <= 0 || f["p99"] <= 0 || f["p99"] > f["time"] {
				t.Errorf("%s, %s: %v", app, build, f)
			}
			kernels, known := f["kernels"]
			if records := strings.HasSuffix(build, ",records"); known != records || records && (kernels <= 0 || kernels > f["launches"] || f["copying"] <= 0 || f["copying"] > f["copies"] || f["compiled"] <= 0 || f["compiled"] > f["compilation"]) {
				t.Errorf("%s, %s: %v", app, build, f)
			}
		}
	}
}

// The figures report a throttled device and a device that others use, if the driver tells.
func TestTheDevicesCondition(t *testing.T) {
	program, folder, env := standIn(t)
	for name, c := range map[string]struct {
		env  []string
		want string
	}{"hot and shared": {[]string{"HOT=1", "SHARED=1"}, "1 2"}, "neither": {nil, "0 0"}, "not told": {[]string{"FAIL=nvmlInit_v2:1"}, "none none"}} {
		f, errs, status := onDevice(t, slices.Concat(env, c.env), program, "lud", "device", "1", "20", "1", folder)
		if status != 0 {
			t.Fatalf("%s: %s", name, errs)
		}
		say := func(key string) string {
			if v, ok := f[key]; ok {
				return fmt.Sprint(v)
			}
			return "none"
		}
		if got := say("throttled") + " " + say("others"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Each failure of CUDA's driver is one line that says what failed and what to do.
func TestCUDAThatFails(t *testing.T) {
	program, folder, env := standIn(t)
	for name, c := range map[string]struct {
		env    []string
		build  string
		folder string
		want   string
	}{
		"no driver":      {env: []string{"LD_LIBRARY_PATH=/no/such/folder"}, want: "gpu: NVIDIA's driver is missing (libcuda.so.1: cannot open shared object file: No such file or directory): use a host that has it, and give the guest a device (devices:)"},
		"no device":      {env: []string{"NO_DEVICE=1"}, want: "gpu: counting devices: NVIDIA's driver found no device: give the guest one (devices:)"},
		"taken":          {env: []string{"FAIL=cuDevicePrimaryCtxRetain:46"}, want: "another program has the device exclusively"},
		"old driver":     {env: []string{"FAIL=cuModuleLoadData:222"}, build: "ptx", want: "the driver (CUDA 12.4) cannot run the build ptx, made by CUDA 13.5 (CUDA error 222, as the test asked): choose another build, or a newer driver"},
		"no compiler":    {env: []string{"FAIL=cuModuleLoadData:221"}, build: "ptx", want: "libnvidia-ptxjitcompiler.so.1) is not in the guest"},
		"two versions":   {env: []string{"FAIL=cuInit:803"}, want: "have different versions"},
		"an old device":  {env: []string{"ARCHITECTURE=61"}, want: "the device has architecture 6.1, but the kernels need 7.5 or newer: use OpenCL (driver=gpu)"},
		"a new device":   {env: []string{"ARCHITECTURE=110"}, want: "no kernels were built for the device's architecture 11.0: choose the build ptx"},
		"no memory":      {env: []string{"FAIL=cuMemAlloc_v2:2"}, want: "the device has too little memory"},
		"a fault":        {env: []string{"FAIL=cuCtxSynchronize:700"}, want: "gpu: waiting for the device: a kernel failed (CUDA error 700, as the test asked)"},
		"a broken one":   {env: []string{"FAIL=cuCtxSynchronize:214"}, want: "the device failed (CUDA error 214, as the test asked): it may need a reset"},
		"no times":       {env: []string{"TIMELESS=1"}, build: "device,records", want: "the driver's profiler (CUPTI) recorded the times of 0 kernels, but 4 were launched: measure without records (driver=cuda_unrecorded)"},
		"something else": {env: []string{"FAIL=cuMemcpyHtoD_v2:999"}, want: "gpu: copying to the device: CUDA error 999, as the test asked"},
		"no profiler":    {build: "device,records", folder: "../../workloads/gpu", want: "gpu: the driver's profiler cannot be loaded: "},
		"not permitted":  {env: []string{"FAIL=cuptiActivityEnable:35"}, build: "device,records", want: "gpu: recording kernels: the driver's profiler (CUPTI) says as the test asked (35): measure without records (driver=cuda_unrecorded)"},
		"lost records":   {env: []string{"DROPPED=1"}, build: "device,records", want: "records: measure fewer times, or without records (driver=cuda_unrecorded)"},
		"no such build":  {build: "sass", want: "gpu: sass: build must be device, ptx or many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.build == "" {
				c.build = "device"
			}
			if c.folder == "" {
				c.folder = folder
			}
			_, errs, status := onDevice(t, append(slices.Clone(env), c.env...), program, "lud", c.build, "1", "20", "1", c.folder)
			if status != 1 || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("exit status %d, %q; want %q", status, errs, c.want)
			}
		})
	}
}

// The kernels for NVIDIA's devices were built from the current sources. Otherwise: make cuda.
func TestKernelsAreBuiltFromTheirSources(t *testing.T) {
	const dir = "../../workloads/gpu"
	sums, err := os.ReadFile(filepath.Join(dir, "cuda.sums"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		text, err := os.ReadFile(filepath.Join(dir, name))
		if digest := sha256.Sum256(text); !ok || err != nil || hex.EncodeToString(digest[:]) != sum {
			t.Errorf("%s differs from the source or the kernels of the last build (%v): make cuda", name, err)
		}
		known[name] = true
	}
	for _, pattern := range []string{"*.cl", "*.ptx", "*.fatbin", "language.h"} {
		all, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(all) == 0 {
			t.Errorf("%s: %d files, %v", pattern, len(all), err)
		}
		for _, path := range all {
			if !known[filepath.Base(path)] {
				t.Errorf("%s: is neither a source nor a result of the last build: make cuda", path)
			}
		}
	}
}
