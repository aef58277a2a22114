// Package process runs containers of Pods as processes of this machine: those whose image is mapped to a program.
//
// Images holds the mappings. A Runner owns all processes of a landscape. For each Pod with a mapped image, the kubelet
// creates a Pod in the Runner, and copies the statuses of its containers to the API. The package may import nothing of
// the project but internal/fsutil, manifests, and the client and the host of nodes.
//
// It promises that a process can only be started through a mapping: a Pod chooses arguments, environment and files
// below its own folder, but never the program, another path or a user. No process outlives the Runner; the next Runner
// ends the processes that a killed one has left behind.
package process
