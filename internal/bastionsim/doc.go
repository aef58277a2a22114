// Package bastionsim is what the simulated provider does for a Bastion. Its subpackages are the simulated cloud
// (cloud), with networks, instances, public addresses and their firewall, and the machines of the instances (machine).
// It may import its subpackages, internal/bastionspec, internal/fsutil, internal/garbage and internal/component.
//
// It promises:
//
//   - The firewall of a bastion is updated before anything else is done for it, and sessions that it does not allow any
//     more are cut.
//   - A Bastion's status says it is ready when its SSH server accepts connections, and not before.
//   - Deletion ends every session and needs no credentials.
package bastionsim
