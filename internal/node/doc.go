// Package node contains what a gardenlet and the machines of a shoot agree on: the paths of a node's programs and of
// their configuration, the files and units that the node agent maintains on a machine, and the RBAC objects that nodes need
// in the shoot.
//
// It is a leaf: it may import API types only. The programs are in the packages below it: agent (gardener-node-agent)
// and kubelet; package host is their interface to a machine. None of them depends on how the machine is implemented, or
// on the seed.
//
// It promises that the same configuration results in the same files, byte for byte, so that their checksum detects a
// change.
package node
