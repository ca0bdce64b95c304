package notebooktest

import "tare/notebook"

// Pair is two treatments that differ only in one factor, with their values of it as users write them.
type Pair struct {
	Factor notebook.Factor
	A, B   notebook.Treatment
	Of     [2]string
}

// Pairs has a pair for each factor.
func Pairs() (all []Pair) {
	for _, f := range notebook.Factors {
		base := Treatment("cpu vm qemu kvm pinned large")
		a, b := base, base
		p := Pair{Factor: f}
		switch f.Name {
		case notebook.FactorPlatform.Name:
			b.Platform = notebook.VMCN
		case notebook.FactorEngine.Name:
			b.Engine = "microvm"
		case notebook.FactorAccelerator.Name:
			b.Accelerator = notebook.TCG
		case notebook.FactorKernel.Name:
			a.Kernel, b.Kernel = "6.1@0123", "6.12@4567"
		case notebook.FactorProvisioning.Name:
			a.Provisioning = notebook.Vanilla
		case notebook.FactorInstance.Name:
			b.Instance, _ = notebook.ParseInstance("xlarge")
		case notebook.FactorNetwork.Name:
			a.Network, b.Network = notebook.NetUser, notebook.NetHost
		case notebook.FactorIsolation.Name:
			a.Isolation, b.Isolation = "cgroup", "quota"
		case notebook.FactorMachine.Name:
			a.Machine, b.Machine = "devices=usb,balloon", "cache=none"
		case notebook.FactorHostCores.Name:
			a.HostCores, b.HostCores = 4, 2
		default:
			values := f.Values
			if values == nil {
				values = map[string][]string{
					notebook.FactorNeighbours.Name: {"cpu:1", "io:1"}, notebook.FactorRate.Name: {"4", "16"}, notebook.FactorPull.Name: {"no", "gzip:8"}, notebook.FactorDevices.Name: {"v.com/gpu=0,v.com/gpu=1", "v.com/gpu=0"},
				}[f.Name]
			}
			a.Factors, b.Factors = map[string]string{f.Name: values[0]}, map[string]string{f.Name: values[1]}
		}
		a.ID, b.ID = f.Name+" a", f.Name+" b"
		p.A, p.B, p.Of = a, b, [2]string{f.Of(a), f.Of(b)}
		all = append(all, p)
	}
	return all
}
