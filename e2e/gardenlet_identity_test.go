package e2e

import (
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func gardenletOf(seed string) string { return "gardener.cloud:system:seed:" + seed }

func certificateIn(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatal("no PEM block")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return certificate
}

// seedAdmin returns the administrator's client for a seed of a landscape.
func seedAdmin(t *testing.T, dir, seed string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(gardenlite(t, dir, "kubeconfig", "seed", seed).OK(t).Stdout))
	must(t, err)
	return clientOf(t, config)
}

// gardenletConfig returns the client configuration of a seed's gardenlet for the garden, which the gardenlet keeps
// in the seed.
func gardenletConfig(t *testing.T, seedClient kubernetes.Interface) (*rest.Config, *x509.Certificate) {
	t.Helper()
	secret, err := seedClient.CoreV1().Secrets("garden").Get(t.Context(), "gardenlet-kubeconfig", metav1.GetOptions{})
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	must(t, err)
	return config, certificateIn(t, string(config.CertData))
}

// TestGardenletIdentity takes the certificate from the seed: it is that of the seed's gardenlet, and RBAC grants it
// only what every authenticated user has.
func TestGardenletIdentity(t *testing.T) {
	config, certificate := gardenletConfig(t, seedAdmin(t, suite.DataDir(), "local"))
	if certificate.Subject.CommonName != gardenletOf("local") ||
		!slices.Equal(certificate.Subject.Organization, []string{"gardener.cloud:system:seeds"}) {
		t.Errorf("the certificate is that of %s", certificate.Subject)
	}
	if len(certificate.DNSNames)+len(certificate.IPAddresses)+len(certificate.URIs)+len(certificate.EmailAddresses) > 0 || certificate.IsCA ||
		!slices.Equal(certificate.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) {
		t.Errorf("the certificate is good for more than a client: %v", certificate.ExtKeyUsage)
	}
	gardenlet := clientOf(t, config)
	self, err := gardenlet.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, created)
	must(t, err)
	user := self.Status.UserInfo
	slices.Sort(user.Groups)
	if user.Username != gardenletOf("local") || !slices.Equal(user.Groups, []string{"gardener.cloud:system:seeds", "system:authenticated"}) {
		t.Errorf("the garden knows it as %s of %q", user.Username, user.Groups)
	}
	checkBindings(t, user)
	for _, verb := range []string{"*", "escalate", "bind", "impersonate"} {
		review, err := gardenlet.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: "*", Resource: "*"}}}, created)
		must(t, err)
		if review.Status.Allowed {
			t.Errorf("it may %s everything: %s", verb, review.Status.Reason)
		}
	}
}

// everybodysRoles are the roles that are bound to all authenticated users.
var everybodysRoles = []string{
	"gardener.cloud:system:read-cluster-identity-configmap", "gardener.cloud:system:read-gardener-system-public",
	"gardener.cloud:system:read-global-resources", "gardener.cloud:system:user-auth",
	"gardener.cloud:system:workload-identity-issuer-discovery",
	"system:basic-user", "system:discovery", "system:public-info-viewer",
}

// checkBindings checks every binding of RBAC: a gardenlet has only the roles of all authenticated users.
func checkBindings(t *testing.T, user authenticationv1.UserInfo) {
	t.Helper()
	var everybodys []string
	check := func(binding string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		for _, s := range subjects {
			switch {
			case s.Kind == "Group" && s.Name == "system:authenticated":
				everybodys = append(everybodys, role.Name)
			case s.Kind == "User" && (s.Name == user.Username || strings.HasPrefix(s.Name, "gardener.cloud:system:seed:")),
				s.Kind == "Group" && slices.Contains(user.Groups, s.Name):
				t.Errorf("the binding %s gives the gardenlet, as %s %s, the role %s", binding, s.Kind, s.Name, role.Name)
			}
		}
	}
	clusterBindings, err := kube.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, b := range clusterBindings.Items {
		check(b.Name, b.RoleRef, b.Subjects)
	}
	bindings, err := kube.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, b := range bindings.Items {
		check(filepath.Join(b.Namespace, b.Name), b.RoleRef, b.Subjects)
	}
	if slices.Sort(everybodys); !slices.Equal(everybodys, everybodysRoles) {
		t.Errorf("everybody has the roles %q, not %q", everybodys, everybodysRoles)
	}
	if len(clusterBindings.Items) < 20 || len(bindings.Items) < 5 {
		t.Errorf("only %d and %d bindings", len(clusterBindings.Items), len(bindings.Items))
	}
}
