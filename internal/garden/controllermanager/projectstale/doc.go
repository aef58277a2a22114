// Package projectstale finds unused Projects: it records since when a Project is unused (status.staleSinceTimestamp)
// and, after a grace period, when it will be deleted (status.staleAutoDeleteTimestamp), and deletes it then.
//
// A Project is in use by Shoots and BackupEntries in its namespace, and by credentials and Quotas there that Shoots
// anywhere use through bindings. A Project that is young, or was active lately, or whose namespace says so by annotation,
// counts as used. Before it deletes a Project it asks the garden itself again, not a cache. It may import API types and
// the kit beside it.
package projectstale
