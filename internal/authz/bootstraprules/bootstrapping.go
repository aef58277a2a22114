// Package bootstraprules has the rules by which a gardenlet gets its first certificate: which request is valid for a
// seed, when a seed's gardenlet is bootstrapped, and the names of the objects for the bootstrapping. The graph, the
// authorizer, the restriction, the approver of requests and the controllers that bootstrap gardenlets share them.
//
// It imports API types and constants only, and nothing of the project.
package bootstraprules

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstraptokenapi "k8s.io/cluster-bootstrap/token/api"
)

// RequestPEMType is the type of the PEM block of a certificate request.
const RequestPEMType = "CERTIFICATE REQUEST"

// The names that Gardener gives the objects for bootstrapping a gardenlet: a ServiceAccount, and the ClusterRole to
// which it is bound by a ClusterRoleBinding <BindingPrefix><namespace>:<AccountPrefix><ManagedSeed>.
const (
	Role          = "gardener.cloud:system:seed-bootstrapper"
	BindingPrefix = Role + ":"
	AccountPrefix = "gardenlet-bootstrap-"
)

// sorted
var clientUsages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature,
	certificatesv1.UsageKeyEncipherment}

// Parse parses the spec.request of a CertificateSigningRequest, which has to be a single PEM block.
func Parse(request []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(request)
	if block == nil || block.Type != RequestPEMType || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("spec.request must be one PEM block " + RequestPEMType)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("spec.request: %w", err)
	}
	return parsed, nil
}

// SeedOf returns the seed whose gardenlet the client certificate is for, or the reason why the request is not valid.
func SeedOf(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) (seed, why string) {
	seed, named := strings.CutPrefix(request.Subject.CommonName, constants.SeedUserNamePrefix)
	usages = slices.Clone(usages)
	slices.Sort(usages)
	switch {
	case !slices.Equal(request.Subject.Organization, []string{constants.SeedsGroup}):
		return "", "the organization must be " + constants.SeedsGroup
	case !named || seed == "":
		return "", "the common name must be " + constants.SeedUserNamePrefix + " and the seed's name"
	case len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0:
		return "", "there must be no subject alternative names"
	case !slices.Equal(slices.Compact(usages), clientUsages):
		return "", "the usages must be key encipherment, digital signature, client auth"
	}
	return seed, ""
}

// IsBootstrapped reports whether the gardenlet of a ManagedSeed or Gardenlet can authenticate: its Seed exists (nil if not), the
// Seed's client certificate has not expired, and no user has requested a new kubeconfig.
func IsBootstrapped(of metav1.Object, seed *gardencorev1beta1.Seed, now time.Time) bool {
	if seed == nil || RequestsNewKubeconfig(of) {
		return false
	}
	expires := seed.Status.ClientCertificateExpirationTimestamp
	return expires == nil || !expires.Time.Before(now)
}

// RequestsNewKubeconfig reports whether a user has requested a new kubeconfig. Then the status of the Seed does not matter.
func RequestsNewKubeconfig(of metav1.Object) bool {
	return of.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationRenewKubeconfig
}

// TokenSecret returns the name of the Secret with the bootstrap token for a ManagedSeed or Gardenlet.
func TokenSecret(namespace, name string) string {
	id := TokenID(namespace, name)
	return bootstraptokenapi.BootstrapTokenSecretPrefix + string(id[:])
}

// TokenID returns the ID of the bootstrap token for a ManagedSeed or Gardenlet: the first digits of a hash of its
// namespace and name. It allocates nothing for valid object names.
func TokenID(namespace, name string) (id [6]byte) {
	const digits = "0123456789abcdef"
	var buffer [512]byte
	text := append(append(append(buffer[:0], namespace...), "--"...), name...)
	sum := sha256.Sum256(text)
	for i, b := range sum[:len(id)/2] {
		id[2*i], id[2*i+1] = digits[b>>4], digits[b&15]
	}
	return id
}
