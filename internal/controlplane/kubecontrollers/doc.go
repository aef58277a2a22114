// Package kubecontrollers runs the Kubernetes controllers that a control plane needs, the controllers themselves and
// not a kube-controller-manager: they empty deleted namespaces, collect garbage, create service accounts, tokens and
// root certificates, aggregate cluster roles, and sign certificate signing requests. In clusters with Pods, it also
// runs the workload controllers and the scheduler, each of them from the first object of its kind on.
//
// Each controller has the identity that a kube-controller-manager with --use-service-account-credentials would give it,
// so that Kubernetes' own RBAC policy applies to it. Run returns when all goroutines have ended, and leaves no
// connection open. Of the project, the package imports only manifests.
//
// table.go lists and creates the controllers, workloads.go and podgc.go those for workloads; controllers.go runs them.
// clients.go, informers.go and discovery.go have what the controllers share to be light.
package kubecontrollers
