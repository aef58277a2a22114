// Package sshclient is the way of a user to the nodes of a Shoot (GEP-15): it makes a key pair and a Bastion in the garden,
// waits for it, goes through it to a node with the key of the Shoot's nodes, keeps the Bastion alive meanwhile, and deletes it.
// It also writes what OpenSSH needs to go the same way. It is a client of the garden as any other: it has the rights of the
// configuration that it is given.
//
// It may import API types, controller-runtime's client, internal/garden/shootclient, internal/fsutil and the name of an
// annotation from internal/component/operation.
//
// It promises:
//
//   - No private key leaves the process, but into files of mode 0600 in a folder of mode 0700 where the caller asks for that.
//   - A host that has once shown a key is refused with another one.
//   - A terminal is as it was before when Run returns.
//   - Listeners are on loopback only. What it starts has ended when it returns, but for what reads standard input: that ends
//     with the process.
package sshclient
