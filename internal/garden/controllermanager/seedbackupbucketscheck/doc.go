// Package seedbackupbucketscheck says in the condition BackupBucketsReady of a Seed whether its BackupBuckets have errors.
//
// It may import API types and the kit and seedstatus beside it.
package seedbackupbucketscheck
