// Package cloud is the simulated cloud of a process: networks and the instances in them. It may import its subpackages,
// internal/bastionsim/machine, internal/bastionspec, internal/fsutil, internal/garbage and
// internal/component/shootowner.
//
// It promises:
//
//   - Networks exist in the process only. Only bastions (InstanceSpec.Public) listen on a port of the host; all other instances
//     are reached through Dial or through a bastion.
//   - A bastion admits only clients whose address its ingress allows, before a byte is read or written, and forwards only to
//     port 22 of the instances that it is for: not to itself, not to other bastions, not to the host, not by name. It has the
//     same public address for its life, or none.
//   - The folder is the cloud: after a kill at any moment, Open finds every network and instance that an Ensure call has
//     returned, with its address and its disk, and starts the instances again. A network or an instance whose Delete call has
//     returned is gone.
//   - An Account sees and changes the networks of one seed only; a network gets another owner only when the garden
//     confirms it.
//   - Close and DeleteInstance return when what they stop has ended.
//
// The folder has networks/ID.json, and instances/ID with instance.json (what was asked for, the address, the user data),
// machine (its disk and host key) and stopped, an empty file, if it was powered off from within.
package cloud
