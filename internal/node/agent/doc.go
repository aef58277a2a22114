// Package agent is gardener-node-agent: it has on a machine what the OperatingSystemConfig of its pool says, from a Secret of
// the shoot, and tells so at the Node.
//
// It may import the packages of a node. It begins with the bootstrap token of the machine. Other than Gardener's, which
// asks for a certificate of its own, it continues with the kubelet's as soon as there is one: so its rights are those
// of its node (Kubernetes' NodeRestriction), and it does not matter when the token expires. Without an own identity
// there is no Lease of the agent, and no node-role label, which no node may give itself.
//
// It promises that a machine has all of a configuration before its Node says so; that what has gone from the configuration
// goes from the machine; and that nothing is restarted that has not changed.
package agent
