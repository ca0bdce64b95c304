package study

import (
	"fmt"
	"path/filepath"
	"slices"

	"tare/lab/engine"
	"tare/notebook"
)

// guestKernels are the files with guests' kernels that a study uses.
type guestKernels struct {
	read  map[string]notebook.Kernel // by path
	files map[string]string          // paths by Kernel.Name
	all   string                     // the name of the one that takes the place of what the platforms say; "": none
}

// takesKernel says whether the kernel of the place's guests can be chosen.
func (s *Spec) takesKernel(p Place) bool {
	return slices.ContainsFunc(s.known.Engines.Of(p.Platform), takes)
}

func takes(k engine.Kind) bool { return k.Kernel != nil }

// readKernels reads the kernels that the platforms name, or the one in their place. What was read when the study was checked is not
// read again when it is planned.
func (s *Spec) readKernels(instead string) error {
	s.kernels = guestKernels{read: s.kernels.read, files: map[string]string{}}
	if s.kernels.read == nil {
		s.kernels.read = map[string]notebook.Kernel{}
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
				return fmt.Errorf("--vm-kernel: %w", err)
			}
			s.kernels.all = k.Name()
			continue
		}
		for j, file := range p.Kernel {
			if file == ownKernel {
				continue
			}
			if _, err := s.readKernel(p, s.kernelPath(file)); err != nil {
				return s.located(err, "platforms", i, "kernel", j)
			}
		}
	}
	if instead != "" && !taken {
		return fmt.Errorf("--vm-kernel %s: the study %s has no virtual machines: leave it out", instead, s.Name)
	}
	return nil
}

func (s *Spec) kernelPath(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(s.Base, file)
}

func (s *Spec) readKernel(p Place, path string) (notebook.Kernel, error) {
	k, read := s.kernels.read[path]
	if !read {
		kinds := s.known.Engines.Of(p.Platform)
		var err error
		if k, err = kinds[slices.IndexFunc(kinds, takes)].Kernel(path); err != nil {
			return k, err
		}
		s.kernels.read[path] = k
	}
	s.kernels.files[k.Name()] = path
	return k, nil
}

// kernelsOf gives the names of the kernels of the place's guests; "" is the engine's own choice.
func (s *Spec) kernelsOf(p Place) []string {
	switch {
	case !s.takesKernel(p) || s.kernels.all == "" && len(p.Kernel) == 0:
		return []string{""}
	case s.kernels.all != "":
		return []string{s.kernels.all}
	}
	var names []string
	for _, file := range p.Kernel {
		name := ""
		if file != ownKernel {
			name = s.kernels.read[s.kernelPath(file)].Name()
		}
		names = append(names, name)
	}
	return names
}
