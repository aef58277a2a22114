// Package projectactivity writes down when something last happened in a Project: in status.lastActivityTimestamp, whenever
// a Shoot, a BackupEntry, or a Quota or credentials that a binding refers to came or changed in its namespace.
//
// It may import API types and the kit beside it. What is older than an hour when it is first seen is no activity: it was
// there before the controller was. Of Secrets and InternalSecrets it sees the metadata only.
package projectactivity
