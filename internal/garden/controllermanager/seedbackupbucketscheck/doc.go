// Package seedbackupbucketscheck reports in the condition BackupBucketsReady of a Seed whether its BackupBuckets have
// errors.
//
// It may import API types, component/conditions and the kit beside it.
package seedbackupbucketscheck
