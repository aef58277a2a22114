// Package manifests has the YAML that is part of the program: what a garden is set up with, the default landscape, and
// samples for users. It imports nothing of the project.
package manifests

import "embed"

// FS has the folders charts, cluster, garden, landscape, programs, samples and shoot. What is in cluster, every cluster of a
// landscape has; what is in programs, a garden has whose component of that name is Gardener's.
//
//go:embed charts cluster garden landscape programs samples shoot
var FS embed.FS

// VolumeProvisioner is the provisioner of the StorageClass in the folder cluster. Each control plane runs it.
const VolumeProvisioner = "gardenlite.dev/volumes"

// Seed has the folder seed: what a seed is set up with, its custom resource definitions among it.
//
//go:embed seed
var Seed embed.FS
