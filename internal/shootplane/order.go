package shootplane

import (
	"net/netip"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// Order is the desired state of a control plane.
type Order struct {
	// APIServer and Controllers say whether the API server and Kubernetes' controllers run. Controllers need the API
	// server.
	APIServer, Controllers bool
	// Checksum changes with the files: another checksum restarts the API server.
	Checksum string
	// Version is the Kubernetes version, with a leading v; the program's own if empty.
	Version string
	// ServiceCIDR is the network of the shoot's Services; the default if it is not valid.
	ServiceCIDR netip.Prefix
	// PodCIDR is the network of the shoot's Pods; without it, Pods get no addresses and do not start.
	PodCIDR netip.Prefix
	// Issuers are the issuers of service account tokens, with spaces in between; the default if empty.
	Issuers string
	// Files are the files of the Secret, by the keys in package spec.
	Files map[string][]byte
}

// sameServer reports whether both orders are for the same API server.
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

// Phase is the phase of a control plane.
type Phase string

// The phases of a control plane.
const (
	// Stopped means that nothing is ordered to run.
	Stopped Phase = "Stopped"
	// Waiting means that other control planes start first.
	Waiting  Phase = "Waiting"
	Starting Phase = "Starting"
	Ready    Phase = "Ready"
	Stopping Phase = "Stopping"
	// Failed means that the API server did not start or ended unexpectedly; it is retried.
	Failed Phase = "Failed"
	// Gone is the last phase of a control plane: the Host has removed it.
	Gone Phase = "Gone"
)

// State is the observed state of a control plane.
type State struct {
	// ID is the shoot's technical ID, Owner the seed to which the control plane belongs.
	ID, Owner string
	Phase     Phase
	// Message says why the phase is Failed.
	Message string
	// URL and Port are the address of the API server, known from its first start on. The port never changes.
	URL  string
	Port int
	// Checksum and Version are those of the running API server.
	Checksum, Version string
	// Controllers says whether Kubernetes' controllers run, ControllersMessage why they do not although they are
	// ordered.
	Controllers        bool
	ControllersMessage string
}
