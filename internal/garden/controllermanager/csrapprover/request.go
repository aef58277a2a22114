package csrapprover

import (
	"crypto/x509"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// parse parses the X.509 request in a CertificateSigningRequest and checks that it is signed with its key.
func parse(csr *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	request, err := bootstraprules.Parse(csr.Spec.Request)
	if err != nil {
		return nil, err
	}
	return request, request.CheckSignature()
}

// seedOf returns the seed whose client certificate is requested, or the reason why the request is ignored.
func seedOf(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest) (seed, why string) {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return "", "it is for the signer " + csr.Spec.SignerName
	}
	seed, why = bootstraprules.SeedOf(request, csr.Spec.Usages)
	if why == "" && len(validation.IsDNS1123Subdomain(seed)) > 0 {
		return "", fmt.Sprintf("%q cannot be the name of a seed", seed)
	}
	return seed, why
}
