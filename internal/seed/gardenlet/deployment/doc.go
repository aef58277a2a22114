// Package deployment lets a gardenlet deploy gardenlets: that of a ManagedSeed into the cluster of its Shoot, and itself
// anew if a Gardenlet object requests it. It computes the configuration of the gardenlet, creates its bootstrap credentials
// for the garden, and leaves running it to a Deployer.
//
// It may import internal/authz/bootstraprules, whose rules say when such credentials may be created, and the gardenlet's
// package bootstrap for the names of Secrets. It promises to request no bootstrap credentials for a seed that is already
// bootstrapped, which the garden would refuse, and that no token gets into a log, an error or an event.
package deployment
