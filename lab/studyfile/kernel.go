package studyfile

import (
	"fmt"
	"path/filepath"
	"slices"

	"tare/notebook"
)

// kernels are the kernel files for guests that a study uses.
type kernels struct {
	read  map[string]notebook.Kernel // by path
	files map[string]string          // paths by Kernel.Name
	all   string                     // name of the kernel that replaces those of the platforms; "": none
}

// readKernels reads the kernels that the platforms name. If a command names one (instead), it reads only that one.
func (s *Spec) readKernels(instead string) (all kernels, err error) {
	all = kernels{read: map[string]notebook.Kernel{}, files: map[string]string{}}
	taken := false
	for i, p := range s.Platforms {
		if !s.takesKernel(p) {
			continue
		}
		taken = true
		if instead != "" {
			if all.all, err = s.readKernel(p, instead, all); err != nil {
				return all, fmt.Errorf("--vm-kernel: %w", err)
			}
			continue
		}
		for j, file := range p.Kernel {
			if file == ownKernel {
				continue
			}
			if _, err := s.readKernel(p, s.kernelPath(file), all); err != nil {
				return all, s.located(err, "platforms", i, "kernel", j)
			}
		}
	}
	if instead != "" && !taken {
		return all, fmt.Errorf("--vm-kernel %s: the study %s has no virtual machines: leave it out", instead, s.Name)
	}
	return all, nil
}

func (s *Spec) kernelPath(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(s.Base, file)
}

// readKernel reads a kernel file, once, and returns the kernel's name.
func (s *Spec) readKernel(p Place, path string, all kernels) (name string, err error) {
	k, read := all.read[path]
	if !read {
		of := s.known.Engines.Of(p.Platform)
		if k, err = of[slices.IndexFunc(of, takes)].Kernel(path); err != nil {
			return "", err
		}
		all.read[path], all.files[k.Name()] = k, path
	}
	return k.Name(), nil
}

// of returns the names of the kernels of the place's guests; "" is the engine's own choice.
func (k kernels) of(s *Spec, p Place) []string {
	switch {
	case !s.takesKernel(p) || k.all == "" && len(p.Kernel) == 0:
		return []string{""}
	case k.all != "":
		return []string{k.all}
	}
	var names []string
	for _, file := range p.Kernel {
		name := ""
		if file != ownKernel {
			name = k.read[s.kernelPath(file)].Name()
		}
		names = append(names, name)
	}
	return names
}
