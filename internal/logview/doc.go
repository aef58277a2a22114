// Package logview reads the log of a landscape: the lines of a component or a cluster, since a time, from a level on,
// in the text format or in JSON. It may import statedir only.
package logview
