// Package shootplane runs the control planes of shoots in this process. A gardenlet describes them in a seed with
// objects in the shoot's namespace, whose names are in package spec: Deployments for the API server and Kubernetes'
// controllers, a Secret with the files of the API server, and a Service whose status contains its address.
//
// A Host runs the control planes. The process has one Host, and the Host at most one control plane per shoot, whichever
// seed it belongs to. A reconciler in each seed passes the desired state to the Host, and writes the status to the objects.
//
// It imports component and controlplane. It promises that a control plane that is deleted, or whose seed is
// stopped, leaves no goroutine and no port behind. Its certificates are deleted with it; its data stays until its
// deletion is confirmed.
package shootplane
