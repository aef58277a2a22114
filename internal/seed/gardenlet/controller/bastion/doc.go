// Package bastion is the gardenlet's controller of Bastions (GEP-15). For each Bastion of the garden whose Shoot is on
// this seed it maintains a Bastion of extensions.gardener.cloud with the same name in the Shoot's namespace in the
// seed, and copies its address and its condition back to the garden. It may import extensionops (which writes extension
// resources), and packages operation and injection (of the provider simulator).
//
// It promises:
//
//   - A Bastion is gone from the garden only after its Bastion in the seed is gone. A Bastion in the seed is also
//     deleted if its Bastion in the garden is gone, or belongs to a Shoot on another seed now.
//   - The machine accepts the key of the Bastion and no other. If the Bastion in the seed has another key, it is
//     replaced.
//   - A Bastion whose Shoot is not on this seed gets no machine.
package bastion
