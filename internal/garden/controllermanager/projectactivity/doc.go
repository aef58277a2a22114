// Package projectactivity records the last activity of a Project in status.lastActivityTimestamp: whenever a Shoot, a
// BackupEntry, or a Quota or credentials to which a binding refers are created, changed or deleted in its namespace.
//
// It may import API types and the kit beside it. An object that is older than an hour when the controller first sees it
// is no activity: it existed before the controller started. The controller watches only the metadata of Secrets and
// InternalSecrets.
package projectactivity
