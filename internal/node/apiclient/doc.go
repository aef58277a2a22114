// Package apiclient is how the programs of a node talk to the API server of their shoot: JSON over HTTP/2, one connection a
// node, no caches. There may be thousands of nodes in one process, so it has as little as they need.
//
// It may import API types only. It promises that those who have the same credentials share a connection, and that it is
// closed when the last of them has let go.
package apiclient
