// Package apiclient makes the clients of a node's programs for the API server of their shoot, with client-go. Clients
// with the same certificate share a connection. They have no caches, because one process may have thousands of nodes.
//
// It may import nothing of the project.
package apiclient
