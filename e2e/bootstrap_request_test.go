package e2e

import (
	"crypto/x509"
	"net"
	"net/url"
	"slices"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func subject(change func(*x509.CertificateRequest)) requestChange {
	return func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
		change(request)
	}
}

func inSpec(change func(*certificatesv1.CertificateSigningRequestSpec)) requestChange {
	return func(_ *x509.CertificateRequest, spec *certificatesv1.CertificateSigningRequestSpec) { change(spec) }
}

func usages(usages ...certificatesv1.KeyUsage) requestChange {
	return inSpec(func(spec *certificatesv1.CertificateSigningRequestSpec) { spec.Usages = usages })
}

func organization(names ...string) requestChange {
	return subject(func(r *x509.CertificateRequest) { r.Subject.Organization = names })
}

func commonName(name string) requestChange {
	return subject(func(r *x509.CertificateRequest) { r.Subject.CommonName = name })
}

// TestBootstrapRequestForm requests, with a valid token, certificates that a gardenlet does not need. They are not
// approved. At the end, a correct request with the same token gets its certificate.
func TestBootstrapRequestForm(t *testing.T) {
	const seed = "boot-form"
	const digital, encipher, client = certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth
	token := newBootstrapToken(t, seed)
	names := map[string]string{}
	for what, change := range map[string]requestChange{
		"usage server auth": usages(digital, encipher, client, certificatesv1.UsageServerAuth),
		"usage cert sign":   usages(digital, encipher, client, certificatesv1.UsageCertSign),
		"any usage":         usages(digital, encipher, client, certificatesv1.UsageAny),
		"a usage less":      usages(digital, client),
		"SAN: DNS name":     subject(func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes.default.svc"} }),
		"SAN: IP address":   subject(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }),
		"SAN: email":        subject(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@example.com"} }),
		"SAN: URI":          subject(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "garden"}} }),
		"no organization":   organization(),
		"other one":         organization("gardener.cloud:system:shoots"),
		"two organizations": organization("gardener.cloud:system:seeds", "gardenlite:admins"),
		"twice the same":    organization("gardener.cloud:system:seeds", "gardener.cloud:system:seeds"),
		"admin's name":      commonName("gardenlite:admin"),
		"controller's name": commonName("gardener.cloud:system:controller-manager"),
		"no seed's name":    commonName("gardener.cloud:system:seed:"),
		"no possible seed":  commonName("gardener.cloud:system:seed:Boot_Form"),
		"signer: kubelet": inSpec(func(spec *certificatesv1.CertificateSigningRequestSpec) {
			spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
		}),
		"signer: any": inSpec(func(spec *certificatesv1.CertificateSigningRequestSpec) { spec.SignerName = "example.com/any" }),
	} {
		names[what] = asked(t, token.kube, seedRequest(t, seed, change))
	}
	for _, groups := range [][]string{{"system:masters"}, {"gardener.cloud:system:seeds", "system:masters"}} {
		if _, err := ask(t, token.kube, seedRequest(t, seed, organization(groups...))); !apierrors.IsForbidden(err) {
			t.Errorf("asking for a certificate of %q: %v", groups, err)
		}
	}
	issued := certificateIn(t, expectCertificate(t, asked(t, token.kube, seedRequest(t, seed))))
	if issued.Subject.CommonName != gardenletOf(seed) ||
		!slices.Equal(issued.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || issued.IsCA {
		t.Errorf("a certificate of %s for %v, CA: %t", issued.Subject, issued.ExtKeyUsage, issued.IsCA)
	}
	for what, name := range names {
		expectNoDecision(t, name, what)
	}
}

// TestBootstrapForAnotherSeed: tokens and gardenlets cannot request the certificate of another seed's gardenlet, and
// gardenlets that of their own one only while there is its Seed.
func TestBootstrapForAnotherSeed(t *testing.T) {
	token, other := newBootstrapToken(t, "boot-a"), newBootstrapToken(t, "boot-b")
	expectDenial(t, asked(t, token.kube, seedRequest(t, "boot-b")), `the bootstrap token is for seed "boot-a", not "boot-b"`)
	expectDenial(t, asked(t, token.kube, seedRequest(t, "local")), `the bootstrap token is for seed "boot-a", not "local"`)
	expectDenial(t, asked(t, other.kube, seedRequest(t, "boot")), `the bootstrap token is for seed "boot-b", not "boot"`)
	// After a denial, the token still works for its own seed.
	expectCertificate(t, asked(t, token.kube, seedRequest(t, "boot-a")))

	gardenlet := clientOf(t, gardenletUser(t, suite.DataDir(), "boot-a").Config)
	for _, seed := range []string{"boot-b", "local", "boot-a2"} {
		if _, err := ask(t, gardenlet, seedRequest(t, seed)); !apierrors.IsForbidden(err) {
			t.Errorf("the gardenlet of boot-a asks for the certificate of %s: %v", seed, err)
		}
	}
	expectDenial(t, asked(t, gardenlet, seedRequest(t, "boot-a")), `there is no Seed "boot-a"`)
	local := clientOf(t, gardenletUser(t, suite.DataDir(), "local").Config)
	expectCertificate(t, asked(t, local, seedRequest(t, "local")))
}

// TestBootstrapTokenWithoutSeed removes the seed from a token's description: then requests with the token are
// denied.
func TestBootstrapTokenWithoutSeed(t *testing.T) {
	token := newBootstrapToken(t, "boot-nameless")
	patchSecret(t, "kube-system", token.secret, map[string]string{"description": "A token."})
	expectDenial(t, asked(t, token.kube, seedRequest(t, "boot-nameless")), "says for no seed that it is for it")
}

// TestBootstrapByUserWithoutRight: of two users who may create requests, only the one who may create
// certificatesigningrequests/seedclient too gets a certificate.
func TestBootstrapByUserWithoutRight(t *testing.T) {
	const resource = "certificatesigningrequests"
	may := func(verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{certificatesv1.GroupName}, Resources: resources, Verbs: verbs}
	}
	without := userWith(t, "boot-without", may([]string{"create", "get"}, resource))
	with := userWith(t, "boot-with", may([]string{"create", "get"}, resource), may([]string{"create"}, resource+"/seedclient"))
	first := asked(t, without, seedRequest(t, "boot-user"))
	expectCertificate(t, asked(t, with, seedRequest(t, "boot-user")))
	expectNoDecision(t, first, "a request of who may not create certificatesigningrequests/seedclient")
}

// TestBootstrapApprovalWithoutRight: requests cannot be approved or signed by their author, by a user who may write
// decisions but not for this signer, or by gardenlets.
func TestBootstrapApprovalWithoutRight(t *testing.T) {
	token := newBootstrapToken(t, "boot-approval")
	name := asked(t, token.kube, seedRequest(t, "boot-approval", usages(certificatesv1.UsageClientAuth))) // not approved automatically
	writer := userWith(t, "boot-approver", rbacv1.PolicyRule{
		APIGroups: []string{certificatesv1.GroupName}, Verbs: []string{"get", "update", "patch"},
		Resources: []string{"certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"},
	}, rbacv1.PolicyRule{
		APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"signers"}, Verbs: []string{"approve", "sign"},
		ResourceNames: []string{"example.com/any"},
	})
	for who, client := range map[string]kubernetes.Interface{
		"the author": token.kube, "a user who may not approve": writer,
		"another gardenlet":    clientOf(t, gardenletUser(t, suite.DataDir(), "local").Config),
		"the gardenlet itself": clientOf(t, gardenletUser(t, suite.DataDir(), "boot-approval").Config),
	} {
		requests := client.CertificatesV1().CertificateSigningRequests()
		csr, err := kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
		if _, err := requests.UpdateApproval(t.Context(), name, csr, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s approves: %v", who, err)
		}
		csr.Status.Conditions, csr.Status.Certificate = nil, config.CAData
		if _, err := requests.UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s signs: %v", who, err)
		}
	}
	expectCertificate(t, asked(t, token.kube, seedRequest(t, "boot-approval")))
	expectNoDecision(t, name, "a request that only those approved who may not")
}

// userWith returns the client of a user with a certificate and a role of its own, which is deleted after the test.
func userWith(t *testing.T, name string, rules ...rbacv1.PolicyRule) kubernetes.Interface {
	t.Helper()
	roles, bindings := kube.RbacV1().ClusterRoles(), kube.RbacV1().ClusterRoleBindings()
	_, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, created)
	must(t, err)
	forget(t, func(delete deletion) error { return roles.Delete(delete.ctx, name, delete.options) })
	_, err = bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}, created)
	must(t, err)
	forget(t, func(delete deletion) error { return bindings.Delete(delete.ctx, name, delete.options) })
	client := clientOf(t, certificateUser(t, suite.DataDir(), name).Config)
	awaitRight(t, client, rules[0])
	return client
}
