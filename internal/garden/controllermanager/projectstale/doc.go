// Package projectstale finds unused Projects: it records since when a Project is unused (status.staleSinceTimestamp)
// and, after a grace period, when it will be deleted (status.staleAutoDeleteTimestamp), and then deletes it.
//
// A Project is used by Shoots and BackupEntries in its namespace, and by Shoots in any namespace that use credentials
// or Quotas of its namespace through bindings. A Project also counts as used if it was created or active recently, or
// if its namespace has the annotation that skips the check. Before it deletes a Project, the controller checks again
// with the API server, not with a cache. It may import API types and the kit beside it.
package projectstale
