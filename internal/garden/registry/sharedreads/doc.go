// Package sharedreads lets requests share what is read for them, where many that want the same come at once. None gets what
// was read before it came.
package sharedreads
