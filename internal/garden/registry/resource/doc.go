// Package resource makes the storage of one Gardener resource out of a Definition, which says only what is particular to
// it: how it is validated, when its generation moves, what its columns are. Everything else is k8s.io/apiserver's generic
// registry. It may import scheme, and nothing else of the project.
package resource
