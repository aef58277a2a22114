// Package manifests has the YAML that is part of the program: what a garden is set up with, the default landscape, and
// samples for users. It imports nothing of the project.
package manifests

import "embed"

// FS has the folders charts, garden, landscape and samples.
//
//go:embed charts garden landscape samples
var FS embed.FS

// Seed has the folder seed: what a seed is set up with, its custom resource definitions among it.
//
//go:embed seed
var Seed embed.FS
