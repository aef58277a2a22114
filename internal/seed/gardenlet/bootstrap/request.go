package bootstrap

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"
)

// requestPrefix is the prefix of the names of gardenlets' CertificateSigningRequests, as in Gardener.
const requestPrefix = "seed-csr-"

// errRejected says that the garden will never issue a certificate for the key.
var errRejected = errors.New("there will be no certificate for this key")

// request returns the CertificateSigningRequest of a gardenlet. Its name is derived from the key, so that after a restart
// the same key finds the same request.
func (c *Config) request(keyPEM []byte) (*certificatesv1.CertificateSigningRequest, error) {
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, fmt.Errorf("the key that is stored cannot be read: %w", errRejected)
	}
	subject := pkix.Name{CommonName: constants.SeedUserNamePrefix + c.SeedName, Organization: []string{constants.SeedsGroup}}
	request, err := certutil.MakeCSR(signer, &subject, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	digest := sha256.Sum256(append(public, subject.CommonName...))
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: requestPrefix + base64.RawURLEncoding.EncodeToString(digest[:])},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    request,
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
				certificatesv1.UsageClientAuth},
		},
	}
	if c.Validity != nil {
		csr.Spec.ExpirationSeconds = ptr.To(int32(*c.Validity / time.Second))
	}
	return csr, nil
}

// requester waits for the certificate of one request. It only creates and gets the request, because the bootstrap user may
// do nothing else.
type requester struct {
	client    certificatesclient.CertificateSigningRequestInterface
	csr       *certificatesv1.CertificateSigningRequest
	durations Durations
	firstPoll time.Duration
	log       logr.Logger

	created bool
	reason  string        // last reason that was logged
	refused time.Duration // for how long the garden has been refusing everything
}

// certificate polls until there is a certificate, or there will never be one.
func (a *requester) certificate(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.durations.Approval)
	defer cancel()
	for delay := a.firstPoll; ; delay = min(delay*3/2, max(a.durations.PollTo, a.firstPoll)) {
		certificate, err := a.getCertificate(ctx)
		switch {
		case ctx.Err() != nil:
		case len(certificate) > 0:
			return certificate, nil
		case a.isFinal(err, delay):
			return nil, fmt.Errorf("asking the garden for a certificate with CertificateSigningRequest %s: %w", a.csr.Name, err)
		case err != nil && err.Error() != a.reason:
			a.reason = err.Error()
			a.log.Info("Asking for a certificate again", "certificateSigningRequest", a.csr.Name, "reason", a.reason)
		}
		if pause(ctx, delay) != nil {
			return nil, a.timeoutError(ctx, err)
		}
	}
}

func (a *requester) timeoutError(ctx context.Context, last error) error {
	if last == nil || errors.Is(last, ctx.Err()) {
		last = fmt.Errorf("neither approved nor denied: %w; approval is up to the garden's controller-manager or `kubectl certificate approve`",
			ctx.Err())
	}
	return fmt.Errorf("waiting for the certificate of CertificateSigningRequest %s: %w", a.csr.Name, last)
}

// isFinal reports whether a retry is pointless. A 401 or 403 is retried for a while: the garden's watches may be stale.
func (a *requester) isFinal(err error, delay time.Duration) bool {
	if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		a.refused = 0
		var untrusted *tls.CertificateVerificationError
		return errors.As(err, &untrusted) || errors.Is(err, errRejected) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	}
	a.refused += delay
	return a.refused >= a.durations.Refusal
}

// getCertificate returns the certificate if there is one. If the request was deleted, it is created again.
func (a *requester) getCertificate(ctx context.Context) ([]byte, error) {
	if !a.created {
		_, err := a.client.Create(ctx, a.csr, metav1.CreateOptions{})
		if err == nil {
			a.log.Info("Asked the garden for a certificate", "certificateSigningRequest", a.csr.Name)
		}
		a.created = err == nil || apierrors.IsAlreadyExists(err)
		if !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	csr, err := a.client.Get(ctx, a.csr.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		a.created = false
	}
	if err != nil {
		return nil, err
	}
	for _, condition := range csr.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateDenied:
			return nil, fmt.Errorf("it is denied (%s): %s: %w", condition.Reason, condition.Message, errRejected)
		case certificatesv1.CertificateFailed:
			return nil, fmt.Errorf("it could not be signed (%s): %s: %w", condition.Reason, condition.Message, errRejected)
		}
	}
	return csr.Status.Certificate, nil
}

// pause waits in real time.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
