// Package shootplane runs the control planes of shoots in this process. A gardenlet orders them in a seed by objects of the
// shoot's namespace, whose names package spec has: Deployments for the API server and Kubernetes' controllers, a Secret
// with what the API server needs, and a Service that tells its address.
//
// Host has what runs, one for the whole process: at most one control plane of a shoot, whichever seed it belongs to. A
// reconciler in each seed hands the host what is ordered, and writes what comes of it to the objects.
//
// It imports component and controlplane. It promises that a control plane that is not ordered any more, or whose seed is
// left, leaves no goroutine, no port and no certificate behind; its data stays until the order to delete it.
package shootplane
