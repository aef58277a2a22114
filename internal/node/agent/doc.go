// Package agent is gardener-node-agent: it applies the OperatingSystemConfig of a machine's pool, which it reads from a
// Secret of the shoot, and reports that on the Node.
//
// It may import the packages of a node. It begins with the bootstrap token of the machine. Unlike Gardener's, which
// requests a certificate of its own, it uses the kubelet's as soon as there is one: so its rights are those of its node
// (Kubernetes' NodeRestriction), and the expiration of the token does not matter. Without an identity of its own, the
// agent has no Lease, and does not set the node-role label, which no node may set on itself.
//
// It promises that a machine has the whole configuration before its Node reports it; that files and units that are
// removed from the configuration are removed from the machine; and that only units that have changed are restarted.
package agent
