// Package workloads is the catalogue of workloads that ship with Tare. Each is a folder of data, which its
// workload.yaml describes. Package lab/workload reads these folders and users' own folders in the same way.
package workloads

import "embed"

// FS holds one folder for each workload.
//
//go:embed */*
var FS embed.FS
