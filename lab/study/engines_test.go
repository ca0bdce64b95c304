package study

import (
	"tare/lab/engine"
	"tare/lab/engine/bare"
	"tare/lab/engine/containerd"
	"tare/lab/engine/docker"
	"tare/lab/engine/layers"
	"tare/lab/engine/lxc"
	"tare/lab/engine/oci"
	"tare/lab/engine/podman"
	"tare/lab/engine/qemu"
	measured "tare/lab/measure/kinds"
	"tare/lab/studyfile"
)

// known is what the tests' studies may name.
var known = studyfile.Known{Engines: kinds, Kinds: measured.All}

// kinds are the engines in known.
var kinds = engine.Registry{bare.Kind, docker.Kind, oci.Crun, oci.Runc, podman.Kind, containerd.Kind, containerd.CRI, lxc.Kind, oci.GVisor, layers.Kind, qemu.VM, qemu.MicroVM, qemu.VMCN}
