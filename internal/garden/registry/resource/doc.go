// Package resource creates the storage of a Gardener resource from a Definition, which has only what is specific to
// the resource: how it is validated, when its generation is increased, which columns it has. The generic registry of
// k8s.io/apiserver does the rest. The package may import scheme, and nothing else of the project.
package resource
