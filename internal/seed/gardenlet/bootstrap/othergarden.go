package bootstrap

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OtherGarden returns the addresses of two gardens if the gardenlet of a seed has a certificate of one that is valid now,
// and a bootstrap kubeconfig is for the other one; empty addresses otherwise. Gardens with the same certificate authority
// are the same, whatever their addresses are.
func OtherGarden(ctx context.Context, seed client.Client, seedName string, kubeconfig []byte, clk clock.PassiveClock) (
	kept, wanted string, err error) {
	config, err := parseKubeconfig(kubeconfig)
	if err != nil {
		return "", "", fmt.Errorf("the bootstrap kubeconfig of seed %q: %w", seedName, err)
	}
	s, err := readStore(ctx, seed)
	if err != nil {
		return "", "", err
	}
	current, err := s.credential(seedName, clk)
	if err != nil || !current.validAt(clk.Now()) {
		return "", "", nil // it is replaced
	}
	if garden := endpointOf(config); !sameGarden(current.garden, garden) {
		return current.garden.Host, garden.Host, nil
	}
	return "", "", nil
}

// sameGarden compares addresses only where there are no authorities to compare.
func sameGarden(a, b *rest.Config) bool {
	if len(a.CAData) == 0 || len(b.CAData) == 0 {
		return a.Host == b.Host
	}
	one, errOne := certutil.ParseCertsPEM(a.CAData)
	other, errOther := certutil.ParseCertsPEM(b.CAData)
	return errOne == nil && errOther == nil && slices.ContainsFunc(one, func(cert *x509.Certificate) bool {
		return slices.ContainsFunc(other, cert.Equal) // one of several during a rotation
	})
}
