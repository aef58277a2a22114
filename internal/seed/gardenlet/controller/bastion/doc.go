// Package bastion is the gardenlet's controller of Bastions (GEP-15): for each Bastion of the garden that leads to a Shoot on
// this seed it keeps a Bastion of extensions.gardener.cloud of the same name in the Shoot's namespace of the seed, and brings
// its address and its condition back to the garden. It may import extensionops (which
// writes extension resources), and packages operation and injection (of the provider simulator).
//
// It promises:
//
//   - A Bastion is gone from the garden only after the one in the seed is gone. One in the seed whose Bastion of the garden is
//     gone, or leads elsewhere now, goes as well.
//   - The machine lets in the key of the Bastion and no other. If the key in the seed is another one, the Bastion there is
//     replaced.
//   - Without its Shoot on this seed a Bastion gets no machine.
package bastion
