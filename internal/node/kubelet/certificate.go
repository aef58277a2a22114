package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/gardenlite/gardenlite/internal/certificates"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/host"
)

const (
	// rotateAfter is the percentage of a certificate's lifetime after which it is renewed.
	rotateAfter = 80
	// requestLife is how long the kubelet waits for the certificate of one request, before it creates another request.
	requestLife = 5 * time.Minute
	signFirst   = 100 * time.Millisecond
	signMax     = 5 * time.Second

	requestPrefix = "node-csr-"
	keyMode       = 0o600
)

func (k *Kubelet) userName() string { return "system:node:" + k.host.Hostname }

// certificate returns the client certificate of the machine (PEM, with its key), nil if there is none that is valid.
func (k *Kubelet) certificate() ([]byte, *x509.Certificate, error) {
	data, err := k.host.Files.ReadFile(node.PathKubeletClient)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate of the kubelet: %w", err)
	}
	certs, err := certutil.ParseCertsPEM(data)
	if err != nil || !certificates.ValidFor(certs[0], k.host.Clock, 0) ||
		certs[0].Subject.CommonName != k.userName() {
		return nil, nil, nil // an unusable certificate counts as none
	}
	return data, certificates.ByClock(certs[0], k.host.Clock), nil
}

// bootstrap obtains the first certificate, with the bootstrap token that gardener-node-agent provides.
func (k *Kubelet) bootstrap(ctx context.Context, config node.KubeletConfig) error {
	data, err := k.host.Files.ReadFile(node.PathKubeconfigBootstrap)
	if err != nil {
		return fmt.Errorf("the kubelet has no certificate, and nothing to ask for one with; replace the machine if that stays so: %w", err)
	}
	token, err := node.TokenOfKubeconfig(data)
	if err != nil {
		return fmt.Errorf("reading %s: %w", node.PathKubeconfigBootstrap, err)
	}
	client, err := apiclient.New(apiclient.Credentials{Server: config.APIServer, CA: []byte(config.CA), Token: token})
	if err != nil {
		return err
	}
	defer client.Close()
	return k.request(ctx, client, config)
}

// request obtains a certificate for a new key with a CertificateSigningRequest, and stores both.
func (k *Kubelet) request(ctx context.Context, client *apiclient.Client, config node.KubeletConfig) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	request, err := certutil.MakeCSR(key, &pkix.Name{CommonName: k.userName(), Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		return fmt.Errorf("making a certificate request: %w", err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: requestPrefix},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    request,
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	csr, err = client.Certificates.CertificateSigningRequests().Create(ctx, csr, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a certificate: %w", err)
	}
	signed, err := k.awaitSigned(ctx, client, csr.Name)
	if err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	return k.keep(config, append(signed, keyPEM...))
}

// awaitSigned waits until a request is signed, and returns the certificate.
func (k *Kubelet) awaitSigned(ctx context.Context, client *apiclient.Client, name string) ([]byte, error) {
	backoff, end := host.Backoff{First: signFirst, Max: signMax}, k.host.Clock.Now().Add(requestLife)
	for k.host.Clock.Now().Before(end) {
		csr, err := client.Certificates.CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("looking for the certificate that was asked for: %w", err)
		}
		if len(csr.Status.Certificate) > 0 {
			return slices.Clone(csr.Status.Certificate), nil
		}
		for _, c := range csr.Status.Conditions {
			if c.Status != corev1.ConditionFalse && (c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed) {
				return nil, fmt.Errorf("the CertificateSigningRequest %s is %s: %s", name, c.Type, c.Message)
			}
		}
		if err := host.Sleep(ctx, k.host.Clock, backoff.Next()); err != nil {
			return nil, err
		}
	}
	return nil,
		fmt.Errorf("the CertificateSigningRequest %s was not signed within %s; is the shoot's kube-controller-manager there?", name, requestLife)
}

// keep writes the certificate with its key, and a kubeconfig that names the file.
func (k *Kubelet) keep(config node.KubeletConfig, certificate []byte) error {
	data, err := node.KubeconfigWithFile(config.APIServer, []byte(config.CA), node.PathKubeletClient)
	if err != nil {
		return err
	}
	if err := k.host.Files.WriteFile(node.PathKubeconfig, data, keyMode); err != nil {
		return fmt.Errorf("writing the kubeconfig of the kubelet: %w", err)
	}
	if err := k.host.Files.WriteFile(node.PathKubeletClient, certificate, keyMode); err != nil {
		return fmt.Errorf("writing the certificate of the kubelet: %w", err)
	}
	return nil
}
