// Package apiclient is the client of a node's programs for the API server of their shoot: JSON over HTTP/2, one
// connection per node, no caches. It has only what these programs need, because one process may have thousands of
// nodes.
//
// It may import API types only. It promises that clients with the same credentials share a connection, and that the
// connection is closed with the last of them.
package apiclient
