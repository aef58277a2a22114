// Package shootcommon is shared by the admission plugins for Shoots: it reads requests and the objects that a Shoot
// refers to, converts errors, and answers simple questions about a Shoot.
//
// It may import the plugin package and the Gardener API types. Its functions do not change their arguments.
package shootcommon
