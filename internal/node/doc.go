// Package node is what a gardenlet says to the machines of a shoot, and what they read: where the programs of a node and
// their configuration are, the user data that a machine boots with, the files and units that the node agent has there from
// then on, and what the shoot's API server must allow for that.
//
// It is a leaf: it may import API types only. The programs themselves are below it: agent (gardener-node-agent) and kubelet;
// host is what they need of a machine. None of them knows the machine that they run on, or the seed.
//
// It promises that the same configuration makes the same files, byte for byte, so that a checksum of them tells a change.
package node
