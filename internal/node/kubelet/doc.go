// Package kubelet is the part of a kubelet that makes a machine a Node: it obtains a client certificate by TLS
// bootstrapping and renews it, registers the Node, updates its status, renews its Lease, and simulates the Pods of the
// node: their containers run at once, and end when the Pod is deleted. Pods with an image that is mapped to a program
// run as processes instead.
//
// It may import the packages of a node, and internal/garbage. It promises that a private key never leaves the machine;
// that a Node that a user deletes is registered again while the machine runs; and that a restarted machine continues with
// its certificate.
package kubelet
