package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tare/desk/words"
	"tare/lab/dockerapi"
	"tare/lab/image"
	"tare/lab/origin"
	"tare/lab/studyfile"
	"tare/notebook"
	"tare/yamlfile"
)

// origin reads the container or the Compose file that the flags name; nil where they name none. It also reads --service: a port, or with
// --compose the name of a service or NAME:PORT.
func (b *benching) origin(ctx context.Context) (o *origin.Origin, err error) {
	name, port, both := strings.Cut(b.serves, ":")
	if !both && b.compose == "" {
		name, port = "", b.serves
	}
	if b.set("service") && (port != "" || b.compose == "") {
		if b.service, err = strconv.Atoi(port); err != nil || b.service < 1 || b.service > 65535 || name != "" && b.compose == "" {
			return nil, fmt.Errorf("--service %q: must be a port from 1 to 65535; with --compose the name of a service, or NAME:PORT", b.serves)
		}
	}
	switch {
	case b.container != "" && b.compose != "":
		return nil, errors.New("--from-container and --compose: only one of them is allowed")
	case (b.container != "" || b.compose != "") && b.image != "":
		return nil, errors.New("--image: the container or the Compose file names the image: leave it out")
	case b.container != "":
		return fromContainer(ctx, b.container)
	case b.compose == "":
		return nil, nil
	case name == "":
		return nil, errors.New("--compose: name a service of the file with --service NAME")
	}
	return fromCompose(b.compose, name)
}

func fromContainer(ctx context.Context, name string) (*origin.Origin, error) {
	text, err := dockerapi.Container(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("--from-container: %w", err)
	}
	o, err := origin.FromContainer(text, func(ref string) string {
		var about struct{ ID string }
		if text, err := dockerapi.Image(ctx, ref); err != nil || json.Unmarshal(text, &about) != nil {
			return "" // the image's name is gone: ask for it by the digest that the container has
		}
		return about.ID
	})
	if err != nil {
		return nil, fmt.Errorf("--from-container %s: %w", name, err)
	}
	return o, nil
}

func fromCompose(file, service string) (*origin.Origin, error) {
	text, err := yamlfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("--compose: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	lookup, err := withDotEnv(filepath.Join(dir, ".env"))
	if err != nil {
		return nil, fmt.Errorf("--compose: %w", err)
	}
	o, err := origin.Compose{Text: text, Dir: dir, Lookup: lookup, Read: yamlfile.Read}.Service(service)
	if err != nil {
		return nil, fmt.Errorf("--compose %s: %w", file, err)
	}
	return o, nil
}

// withDotEnv looks up variables in the environment, and then in the file if it exists.
func withDotEnv(file string) (origin.Lookup, error) {
	text, err := yamlfile.Read(file)
	if errors.Is(err, os.ErrNotExist) {
		return os.LookupEnv, nil
	}
	if err != nil {
		return nil, err
	}
	env, err := origin.ParseDotEnv(string(text), os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	of := map[string]string{}
	for _, kv := range env {
		key, value, _ := strings.Cut(kv, "=")
		of[key] = value
	}
	return func(name string) (string, bool) {
		if value, set := os.LookupEnv(name); set {
			return value, true
		}
		value, set := of[name]
		return value, set
	}, nil
}

// adopt takes over the settings of the origin; flags take precedence. left has a line for each setting that is not taken over.
func (b *benching) adopt(o *origin.Origin, use *studyfile.Use) (left []string, err error) {
	left = o.Left
	use.Image, use.Dir, use.User = o.Image, o.Dir, o.User
	if len(use.Command) == 0 {
		use.Command, use.Args = o.Command, o.Args
	}
	use.Env = origin.Merge(append(o.Env, use.Env...))
	for _, v := range o.Volumes {
		if why := unfit(v); why != "" {
			left = append(left, fmt.Sprintf("not taken over: mount %s: %s", v.Guest, why))
			continue
		}
		use.Volumes = append(use.Volumes, v.Host+":"+v.Guest)
	}
	size, more, err := sizeOf(o)
	if err != nil {
		return nil, err
	}
	if !b.set("size") {
		b.sizes = size
		left = append(left, more...)
	}
	if !b.set("provisioning") && (o.CPUSet != "" || o.Cores > 0) {
		b.provisioning = "quota"
		if o.CPUSet != "" {
			b.provisioning = "set"
		}
	}
	if b.service != 0 || len(o.Ports) == 0 {
		return left, nil
	}
	switch {
	case b.load == "" && b.argv: // the user's command, which ends, replaces the service
		return left, nil
	case len(o.Ports) > 1:
		return nil, fmt.Errorf("%s listens on the ports %s: name one with --service %sPORT", o.Name, strings.Trim(fmt.Sprint(o.Ports), "[]"), b.named())
	case b.load == "":
		return nil, fmt.Errorf("%s listens on port %d: measure it as a service with --load PATH, or name a command that ends after --", o.Name, o.Ports[0])
	}
	b.service = o.Ports[0]
	return left, nil
}

// taken says in a line what a fresh copy of the container has of it.
func taken(o *origin.Origin) string {
	parts := []string{"image " + o.Image}
	if o.Cores > 0 {
		parts = append(parts, words.CPUs(o.Cores)+" (--cpus)")
	}
	if o.CPUSet != "" {
		parts = append(parts, "CPUs "+o.CPUSet+" (--cpuset-cpus)")
	}
	if o.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%d MB", o.Memory/notebook.MiB))
	}
	if len(o.Ports) > 0 {
		parts = append(parts, "port "+strings.Trim(fmt.Sprint(o.Ports), "[]"))
	}
	return "taken over unless a flag says otherwise: " + strings.Join(parts, ", ") + "; fresh copies are measured, and not the container itself"
}

// named is the text before the port in --service.
func (b *benching) named() string {
	if b.compose == "" {
		return ""
	}
	name, _, _ := strings.Cut(b.serves, ":")
	return name + ":"
}

// unfit says why a mount cannot be a volume; "" where it can.
func unfit(v origin.Volume) string {
	if err := image.CheckVolumes([]image.Volume{{Host: v.Host, Guest: v.Guest}}); err != nil {
		return err.Error()
	}
	switch fi, err := os.Stat(v.Host); {
	case err != nil:
		return err.Error()
	case !fi.IsDir() && !fi.Mode().IsRegular():
		return "only folders and regular files are copied"
	}
	return ""
}

// The size of bench where neither a flag nor the origin sets one.
const (
	usualCores  = 1
	usualMemory = 1 << 30
)

// sizeOf is the size that the origin's limits describe. notes name the limits that it lacks.
func sizeOf(o *origin.Origin) (size string, notes []string, err error) {
	cores, memory := o.Cores, o.Memory>>20
	cpus, err := notebook.ParseCPUList(o.CPUSet)
	if err != nil {
		return "", nil, fmt.Errorf("%s: CPU set %.100q: must be a list such as 0-1,3", o.Name, o.CPUSet)
	}
	if len(cpus) > 0 {
		if cores > 0 && cores != float64(len(cpus)) {
			notes = append(notes, fmt.Sprintf("not taken over: the CPU quota of %g; the CPU set of %d CPUs is used", cores, len(cpus)))
		}
		cores = float64(len(cpus))
	}
	if cores == 0 {
		cores = usualCores
		notes = append(notes, fmt.Sprintf("has no CPU limit: %d CPU is used; choose with --size", usualCores))
	}
	if memory == 0 {
		memory = usualMemory >> 20
		notes = append(notes, fmt.Sprintf("has no memory limit: %d MB are used; choose with --size", memory))
	}
	return fmt.Sprintf("%s/%dMB", strconv.FormatFloat(cores, 'f', -1, 64), memory), notes, nil
}
