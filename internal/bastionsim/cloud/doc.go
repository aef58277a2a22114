// Package cloud is the simulated cloud of a process: networks and the instances in them. It may import internal/bastionsim/machine,
// internal/fsutil and internal/garbage.
//
// It promises:
//
//   - Networks are in the process only. No instance but bastions (InstanceSpec.Public) listens on a port of the host; what can
//     reach another instance has to come through Dial, or through a bastion.
//   - A bastion lets in those whose address its ingress allows, before a byte is read or written, and forwards to port 22 of
//     the instances that it is for: not to itself, not to other bastions, not to the host, not by name. It has the same public
//     address for its life, or none.
//   - The folder is the cloud: after a kill at any moment, Open finds every network and instance that an Ensure call has
//     returned, with its address and its disk, and starts the instances again. What a Delete call has returned for is gone.
//   - Ensure and Delete calls can be repeated.
//   - Close and DeleteInstance return when what they stop has ended.
//
// The folder has networks/ID.json, and instances/ID with instance.json (what was asked for, the address, the user data),
// machine (its disk and host key) and stopped, an empty file, if it was powered off from within.
package cloud
