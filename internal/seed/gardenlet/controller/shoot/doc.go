// Package shoot is the gardenlet's controller of Shoots, which creates the clusters. For each Shoot that the seed is
// responsible for it maintains, in the seed, a namespace with the Shoot's technical ID as its name, a Cluster resource,
// the Shoot's secrets, its extension resources and the Deployments of its control plane; and, in the shoot itself, what
// Gardener's users expect there. It may import the gardenlet's flows and shootsecrets, what controllers of Gardener's
// objects have in common, and the names that the runner of control planes (internal/shootplane/spec) and the nodes
// (internal/node) use.
//
// An operation (Create, Reconcile, Migrate, Restore, Delete) is a flow of named steps, which flow_*.go define with
// their order. A step that waits for an extension ends the run of the flow; the event of the extension's next write in
// the seed triggers the next run (add.go). The botanist remembers completed steps between runs, but nothing depends on
// that.
//
// Operations that users request are carried out completely: requested worker pools are rolled (pools.go, with the state
// that shootsecrets keeps), nodes have their new keys before a rotation has succeeded (nodes.go), and a forced deletion
// waits for no extension that fails (forcedelete.go).
//
// It promises that the next gardenlet completes an operation that was interrupted anywhere; that each extension is
// requested once per operation; that a Shoot is gone from the garden only after everything of it is gone from the seed;
// that status.uid is written before anything else is created; and that a Shoot which moves to another seed leaves
// nothing behind and loses nothing.
package shoot
