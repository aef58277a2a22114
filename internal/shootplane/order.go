package shootplane

import (
	"net/netip"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// Order is what shall run of a control plane.
type Order struct {
	// APIServer and Controllers say what runs. Controllers need the API server.
	APIServer, Controllers bool
	// Checksum tells of the files: another one restarts the API server.
	Checksum string
	// Version is the Kubernetes version, with a leading v; the program's own if empty.
	Version string
	// ServiceCIDR is the network of the shoot's Services; the default if it is not valid.
	ServiceCIDR netip.Prefix
	// PodCIDR is the network of the shoot's Pods; without one they get no addresses, and do not start.
	PodCIDR netip.Prefix
	// Issuers are the issuers of service account tokens, with spaces in between; the default if empty.
	Issuers string
	// Files are those of the Secret, by spec's keys.
	Files map[string][]byte
}

// sameServer says whether two orders are for the same API server.
func (o Order) sameServer(other Order) bool {
	return o.APIServer == other.APIServer && o.Checksum == other.Checksum && o.Version == other.Version &&
		o.ServiceCIDR == other.ServiceCIDR && o.Issuers == other.Issuers
}

func (o Order) authorities() *pki.Authorities {
	return &pki.Authorities{
		CA:                   pki.KeyPair{Cert: o.Files[spec.KeyCA], Key: o.Files[spec.KeyCAKey]},
		ClientCA:             pki.KeyPair{Cert: o.Files[spec.KeyClientCA], Key: o.Files[spec.KeyClientCAKey]},
		FrontProxyCA:         pki.KeyPair{Cert: o.Files[spec.KeyFrontProxyCA], Key: o.Files[spec.KeyFrontProxyCAKey]},
		CABundle:             o.Files[spec.KeyCABundle],
		ClientCABundle:       o.Files[spec.KeyClientCABundle],
		ServiceAccountKey:    o.Files[spec.KeyServiceAccountKey],
		ServiceAccountBundle: o.Files[spec.KeyServiceAccountBundle],
	}
}

// Phase is where a control plane is on its way.
type Phase string

// The phases.
const (
	// Stopped means that nothing shall run.
	Stopped Phase = "Stopped"
	// Waiting means that others are started before.
	Waiting  Phase = "Waiting"
	Starting Phase = "Starting"
	Ready    Phase = "Ready"
	Stopping Phase = "Stopping"
	// Failed means that the API server did not start or has ended by itself; it is tried again.
	Failed Phase = "Failed"
	// Gone is the last that is told of a control plane: the host has forgotten it.
	Gone Phase = "Gone"
)

// State is what there is of a control plane.
type State struct {
	// ID is the shoot's technical ID, Owner the seed that it runs in.
	ID, Owner string
	Phase     Phase
	// Message says why the phase is Failed.
	Message string
	// URL and Port are where the API server is reached, once it has been started for the first time. The port stays.
	URL  string
	Port int
	// Checksum and Version are those of the API server that runs.
	Checksum, Version string
	// Controllers says whether Kubernetes' controllers run, ControllersMessage why they do not although they shall.
	Controllers        bool
	ControllersMessage string
}
