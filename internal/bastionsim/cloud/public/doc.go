// Package public assigns the public addresses of a cloud's bastions: addresses on the host's loopback. It imports
// nothing of the project.
//
// It promises:
//
//   - Addresses are of the loopback only, whatever the configuration says.
//   - Where the host has all of 127.0.0.0/8 (Linux), each bastion gets an address of its own, with port 22 if the process may
//     listen on it, else port 2222. Where the host has 127.0.0.1 alone, each bastion gets a port of its own there.
//   - New addresses are chosen at random, so that a released address is hardly ever assigned again soon: clients remember host
//     keys by address.
package public
