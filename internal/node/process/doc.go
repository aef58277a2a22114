// Package process runs containers of Pods as processes of this machine: those whose image is mapped to a program.
//
// Images are the mappings. A Runner owns all processes of a landscape; a kubelet has a Pod of it for each of its Pods that
// names a mapped image, and copies the statuses of its containers to the API. The package may import nothing of the project
// but internal/fsutil.
//
// It promises that a mapping is the only way to a process: a Pod chooses arguments, environment and files below its own
// folder, never the program, another path or a user. No process outlives the Runner; what a Runner that was killed leaves
// behind is ended by the next one.
package process
