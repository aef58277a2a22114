// Package kubecontrollers runs the Kubernetes controllers that a control plane needs, the controllers themselves and not a
// kube-controller-manager: namespaces are emptied, garbage is collected, service accounts, tokens and root certificates
// appear, cluster roles are aggregated, certificate signing requests are signed. Where Pods run, it runs the workload
// controllers and the scheduler as well, each from the first object of its kind on.
//
// Each controller has the identity that a kube-controller-manager with --use-service-account-credentials would give it,
// so Kubernetes' own RBAC policy applies to it. Run ends when all of its goroutines have, and leaves no connection open.
// It imports nothing of the project.
//
// table.go says what there is and makes it, workloads.go and podgc.go the part for workloads, controllers.go runs it;
// clients.go, informers.go and discovery.go are what the controllers share to be light.
package kubecontrollers
