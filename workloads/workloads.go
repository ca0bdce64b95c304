// Package workloads is the catalogue of workloads that ship with Tare: a folder of data each, described by its
// workload.yaml. Package lab/workload reads them, and a user's own folder the same way.
package workloads

import "embed"

// FS holds one folder for each workload.
//
//go:embed */*
var FS embed.FS
