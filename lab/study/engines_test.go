package study

import (
	"tare/lab/engine"
	"tare/lab/engine/bare"
	"tare/lab/engine/docker"
	"tare/lab/engine/layers"
	"tare/lab/engine/lxc"
	"tare/lab/engine/oci"
	"tare/lab/engine/podman"
	"tare/lab/engine/qemu"
	"tare/lab/measure"
	"tare/lab/measure/arrivals"
	"tare/lab/measure/capacity"
	"tare/lab/measure/fit"
	"tare/lab/measure/memory"
	"tare/lab/measure/paging"
	"tare/lab/measure/starting"
)

// known is what the tests' studies may name.
var known = Known{kinds, measure.Registry{arrivals.Kind, capacity.Kind, fit.Kind, memory.Kind, paging.Kind, starting.Kind}}

// kinds are the engines of it.
var kinds = engine.Registry{bare.Kind, docker.Kind, oci.Crun, oci.Runc, podman.Kind, lxc.Kind, oci.GVisor, layers.Kind, qemu.VM, qemu.VMCN}
