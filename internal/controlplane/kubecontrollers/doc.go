// Package kubecontrollers runs the Kubernetes controllers that a control plane without nodes needs, the controllers
// themselves and not a kube-controller-manager: namespaces are emptied, garbage is collected, service accounts, tokens
// and root certificates appear, cluster roles are aggregated, certificate signing requests are signed.
//
// Each controller has the identity that a kube-controller-manager with --use-service-account-credentials would give it,
// so Kubernetes' own RBAC policy applies to it. Run ends when all of its goroutines have. It imports nothing of the
// project.
package kubecontrollers
