// Package deployment is how a gardenlet deploys gardenlets: that of a ManagedSeed into the cluster of its Shoot, and itself
// anew where a Gardenlet object asks for that. It puts together what is to be run, makes what a gardenlet needs to get an
// identity of its own in the garden, and leaves the running to a Deployer.
//
// It may import internal/authz/bootstraprules, whose rules say when such credentials may be made, and the gardenlet's
// package bootstrap for the names of Secrets. It promises to ask the garden for nothing about the bootstrapping of a seed
// that is bootstrapped, which the garden would refuse, and that no token gets into a log, an error or an event.
package deployment
