// Package shoot is the gardenlet's controller of Shoots: the one that makes clusters. For each Shoot that the seed is
// responsible for it has a namespace in the seed, named after the Shoot's technical ID, with a Cluster resource beside it,
// the Shoot's secrets, its extension resources and the order for its control plane; and in the shoot itself what Gardener's
// users expect there. It may import the gardenlet's flows and shootsecrets, what controllers of Gardener's objects have in
// common, and the names that the runner of control planes (internal/shootplane/spec) and the nodes (internal/node) go by.
//
// An operation (Create, Reconcile, Migrate, Restore, Delete) is a flow of named steps: flow_*.go say which, in what
// order. A step that waits for an extension ends the run; what the extension then writes in the seed begins the next
// (add.go). The botanist keeps what is done already between runs, and nothing depends on that.
//
// What users ask for by hand is real: pools that are to roll do (pools.go, by what shootsecrets keeps), nodes have their new keys
// before a rotation has succeeded (nodes.go), and a deletion by force waits for no extension that fails (forcedelete.go).
//
// It promises that an operation that was cut off anywhere is completed by the next gardenlet; that each extension is
// requested once in an operation; that a Shoot is gone from the garden only after everything of it has gone from the seed;
// that status.uid is there before anything else is; and that a Shoot which moves to another seed leaves nothing behind
// and loses nothing.
package shoot
