// Package shootcommon is what the admission plugins about Shoots share: reading a request and the objects a Shoot refers
// to, answering errors, and small questions to a Shoot.
//
// It may import the plugin package and the Gardener API types. Its functions change nothing that they are given, but for
// those that say so.
package shootcommon
