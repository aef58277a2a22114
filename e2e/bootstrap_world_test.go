package e2e

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// bootstrapToken is a token of "gardenlite token create", with a client that uses it.
type bootstrapToken struct {
	seed, secret string
	config       *rest.Config
	kube         kubernetes.Interface
}

// newBootstrapToken creates a token in the suite's landscape, waits until it works, and deletes it after the test.
func newBootstrapToken(t *testing.T, seed string) *bootstrapToken {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(
		[]byte(gardenlite(t, suite.DataDir(), "token", "create", "--seed", seed, "--yes").OK(t).Stdout))
	must(t, err)
	token := &bootstrapToken{seed: seed, secret: bootstrapTokenOf("garden", seed), config: config, kube: clientOf(t, config)}
	t.Cleanup(func() {
		_ = kube.CoreV1().Secrets("kube-system").Delete(context.Background(), token.secret, metav1.DeleteOptions{})
	})
	eventually(t, waitTimeout, token.works)
	return token
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Timeout, config.WarningHandler = -1, cmp.Or(config.Timeout, 30*time.Second), rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// works returns an error unless the garden accepts the token.
func (b *bootstrapToken) works(ctx context.Context) error {
	_, err := b.kube.CoreV1().RESTClient().Get().AbsPath("/api").DoRaw(ctx)
	return err
}

type requestChange func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)

// seedRequest returns the request for the client certificate of a seed's gardenlet, with changes.
func seedRequest(t *testing.T, seed string, changes ...requestChange) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	spec := certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature,
			certificatesv1.UsageClientAuth},
	}
	object := requestObject(t, "", seed, func(request *x509.CertificateRequest) {
		for _, change := range changes {
			change(request, &spec)
		}
	})
	csr := &certificatesv1.CertificateSigningRequest{}
	data, err := json.Marshal(object)
	must(t, err)
	must(t, json.Unmarshal(data, csr))
	csr.GenerateName, spec.Request = "seed-csr-e2e-", csr.Spec.Request
	csr.Spec = spec
	return csr
}

// ask creates a request with a client, and deletes it with the test.
func ask(t *testing.T, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) (
	*certificatesv1.CertificateSigningRequest, error) {
	t.Helper()
	csr, err := client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr, created)
	if err == nil {
		t.Cleanup(func() {
			_ = kube.CertificatesV1().CertificateSigningRequests().Delete(context.Background(), csr.Name, metav1.DeleteOptions{})
		})
	}
	return csr, err
}

// asked is ask for a request that has to succeed. It returns the request's name.
func asked(t *testing.T, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) string {
	t.Helper()
	csr, err := ask(t, client, csr)
	must(t, err)
	return csr.Name
}

// decision returns the certificate of a request, or why it was denied, and whether it was approved.
func decision(ctx context.Context, t *testing.T, name string) (certificate, denied string, approved bool) {
	t.Helper()
	csr, err := kube.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
	must(t, err)
	for _, condition := range csr.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case certificatesv1.CertificateDenied:
			denied = condition.Message
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	return string(csr.Status.Certificate), denied, approved
}

// expectCertificate waits for the certificate of a request.
func expectCertificate(t *testing.T, name string) (certificate string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		issued, denied, approved := decision(ctx, t, name)
		if certificate = issued; issued == "" || denied != "" {
			return fmt.Errorf("request %s: denied %q, approved %t, no certificate", name, denied, approved)
		}
		return nil
	})
	return certificate
}

// expectDenial waits until a request is denied for a reason.
func expectDenial(t *testing.T, name, because string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		certificate, denied, approved := decision(ctx, t, name)
		if approved || certificate != "" {
			t.Fatalf("request %s is approved", name)
		}
		if !strings.Contains(denied, because) {
			return fmt.Errorf("request %s is denied: %q, not because %q", name, denied, because)
		}
		return nil
	})
}

// expectNoDecision expects that a request has no decision. Call it after later requests have been decided on: the
// controller takes requests in order.
func expectNoDecision(t *testing.T, name, what string) {
	t.Helper()
	certificate, denied, approved := decision(t.Context(), t, name)
	if certificate != "" || denied != "" || approved {
		t.Errorf("%s: approved %t, denied %q, certificate of %d bytes", what, approved, denied, len(certificate))
	}
}
