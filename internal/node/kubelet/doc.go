// Package kubelet is the part of a kubelet that makes a Node of a machine: it gets a client certificate by TLS bootstrapping
// and renews it, registers the Node, tells how it is, renews its Lease, and simulates the Pods of the node: their containers
// run at once, and end when the Pod is deleted.
//
// It may import the packages of a node. It promises that a key never leaves the machine; that a Node that a user deletes
// is there again while the machine runs; and that a machine that starts again continues with the certificate that it has.
package kubelet
