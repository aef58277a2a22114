// Package bastionsim is the Bastion controller of the simulated provider. Below it are the simulated cloud (cloud), with
// networks, instances, public addresses and their firewall, and the machines that instances are (machine). It may import
// what is below it, internal/fsutil, internal/garbage and internal/component.
//
// It promises:
//
//   - The firewall of a bastion is updated before anything else is done for it, and sessions that it does not allow any
//     more are cut.
//   - A Bastion's status says it is ready when its SSH server accepts connections, and not before.
//   - Deletion ends every session and needs no credentials.
package bastionsim
