// Package public is what a cloud needs for instances that the host can reach: addresses on the host's loopback, and the
// firewall in front of them. It imports nothing of the project.
//
// It promises:
//
//   - Addresses are of the loopback only, whatever the configuration says.
//   - Where the host has all of 127.0.0.0/8 (Linux), each bastion gets an address of its own, and port 22 there if the process
//     may have it, else port 2222. Where it has 127.0.0.1 alone, each gets a port of its own there.
//   - New addresses are chosen at random, so that one that was released is hardly ever assigned again soon: clients
//     remember host keys by addresses.
//   - Ingress rules that say nothing allow nothing.
package public
