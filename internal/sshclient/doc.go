// Package sshclient connects a user to the nodes of a Shoot (GEP-15): it creates a key pair and a Bastion in the
// garden, waits for the Bastion, connects through it to a node with the key of the Shoot's nodes, keeps the Bastion
// alive meanwhile, and deletes it. It also writes the files with which OpenSSH connects in the same way. In the garden,
// it has the rights of the configuration that it is given.
//
// It may import API types, controller-runtime's client, internal/garden/shootclient, internal/fsutil and the name of an
// annotation from internal/component/operation.
//
// It promises:
//
//   - No private key leaves the process, except to files of mode 0600 in a folder of mode 0700 if the caller asks for them.
//   - A host that has shown a key is refused if it shows another one later.
//   - Run restores the user's terminal before it returns.
//   - Listeners are on loopback only. Everything that a function starts has ended when it returns, except for the reader of
//     standard input, which ends with the process.
package sshclient
