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
	all   []string                   // names of the kernels that replace those of the platforms; none: the platforms' own
}

// mostKernels is how many kernels a command may name: the second is compared with the first.
const mostKernels = 2

// readKernels reads the kernels that the platforms name. If a command names some (instead), it reads only those.
func (s *Spec) readKernels(instead []string) (all kernels, err error) {
	if len(instead) > mostKernels {
		return all, fmt.Errorf("--vm-kernel: is given %d times: name at most %d kernels, which are then compared", len(instead), mostKernels)
	}
	all = kernels{read: map[string]notebook.Kernel{}, files: map[string]string{}}
	taken := false
	for i, p := range s.Platforms {
		if !s.takesKernel(p) {
			continue
		}
		taken = true
		if len(instead) > 0 {
			if all.all, err = s.named(p, instead, all); err != nil {
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
	if len(instead) > 0 && !taken {
		return all, fmt.Errorf("--vm-kernel %s: the study %s has no virtual machines: leave it out", instead[0], s.Name)
	}
	return all, nil
}

// named reads the kernels that a command names, and returns their names.
func (s *Spec) named(p Place, files []string, all kernels) (names []string, err error) {
	for i, file := range files {
		name, err := s.readKernel(p, file, all)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("%s and %s are the same kernel: name two different ones", files[i-1], file)
		}
		names = append(names, name)
	}
	return names, nil
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
	case !s.takesKernel(p) || len(k.all) == 0 && len(p.Kernel) == 0:
		return []string{""}
	case len(k.all) > 0:
		return k.all
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
