package controlplane

import (
	"crypto/x509"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
)

// clientAuthorities reads the certificate authorities of clients from a file. The expiry of client certificates is
// checked with the clock of the landscape.
type clientAuthorities struct {
	*dynamiccertificates.DynamicFileCAContent
	clock clock.PassiveClock
}

var (
	_ dynamiccertificates.CAContentProvider = clientAuthorities{}
	_ dynamiccertificates.ControllerRunner  = clientAuthorities{}
	_ dynamiccertificates.Notifier          = clientAuthorities{}
)

func newClientAuthorities(file string, clock clock.PassiveClock) (dynamiccertificates.CAContentProvider, error) {
	content, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca-bundle", file)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of clients: %w", err)
	}
	return clientAuthorities{content, clock}, nil
}

// VerifyOptions implements dynamiccertificates.CAContentProvider.
func (a clientAuthorities) VerifyOptions() (x509.VerifyOptions, bool) {
	options, ok := a.DynamicFileCAContent.VerifyOptions()
	options.CurrentTime = a.clock.Now()
	return options, ok
}
