package studyfile

import (
	"fmt"
	"path/filepath"
	"slices"

	"tare/notebook"
)

// kernels are the files with guests' kernels that a study uses.
type kernels struct {
	files map[string]string // paths by Kernel.Name
	all   string            // the name of the one that takes the place of what the platforms say; "": none
}

// readKernels reads the kernels that the platforms name, or the one in their place. A file is read once, however often it is
// asked for.
func (s *Spec) readKernels(instead string) (all kernels, err error) {
	all.files = map[string]string{}
	if s.kernels == nil {
		s.kernels = map[string]notebook.Kernel{}
	}
	taken := false
	for i, p := range s.Platforms {
		if !s.takesKernel(p) {
			continue
		}
		taken = true
		if instead != "" {
			k, err := s.readKernel(p, instead)
			if err != nil {
				return all, fmt.Errorf("--vm-kernel: %w", err)
			}
			all.files[k.Name()], all.all = instead, k.Name()
			continue
		}
		for j, file := range p.Kernel {
			if file == ownKernel {
				continue
			}
			path := s.kernelPath(file)
			k, err := s.readKernel(p, path)
			if err != nil {
				return all, s.located(err, "platforms", i, "kernel", j)
			}
			all.files[k.Name()] = path
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

func (s *Spec) readKernel(p Place, path string) (notebook.Kernel, error) {
	if k, read := s.kernels[path]; read {
		return k, nil
	}
	of := s.known.Engines.Of(p.Platform)
	k, err := of[slices.IndexFunc(of, takes)].Kernel(path)
	if err == nil {
		s.kernels[path] = k
	}
	return k, err
}

// of gives the names of the kernels of the place's guests; "" is the engine's own choice.
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
			name = s.kernels[s.kernelPath(file)].Name()
		}
		names = append(names, name)
	}
	return names
}
