package shootplane

import (
	"net/netip"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// DesiredState is the desired state of a control plane.
type DesiredState struct {
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
	// NodeMask is the prefix length of the Pod range of a Node; the default if it is 0.
	NodeMask int
	// Issuers are the issuers of service account tokens, with spaces in between; the default if empty.
	Issuers string
	// Hosts are further names of the API server, with spaces in between.
	Hosts string
	// NodeAgents says that Gardener's gardenlet configures the machines: what they read is not in their RBAC.
	NodeAgents bool
	// Files are the files of the Secret, by the keys in package spec.
	Files map[string][]byte
}

// sameServer reports whether both are for the same API server.
func (d DesiredState) sameServer(other DesiredState) bool {
	return d.APIServer == other.APIServer && d.Checksum == other.Checksum && d.Version == other.Version &&
		d.ServiceCIDR == other.ServiceCIDR && d.Issuers == other.Issuers && d.Hosts == other.Hosts &&
		d.NodeAgents == other.NodeAgents
}

func (d DesiredState) authorities() *pki.Authorities {
	return &pki.Authorities{
		CA:                   pki.KeyPair{Cert: d.Files[spec.KeyCA], Key: d.Files[spec.KeyCAKey]},
		ClientCA:             pki.KeyPair{Cert: d.Files[spec.KeyClientCA], Key: d.Files[spec.KeyClientCAKey]},
		FrontProxyCA:         pki.KeyPair{Cert: d.Files[spec.KeyFrontProxyCA], Key: d.Files[spec.KeyFrontProxyCAKey]},
		KubeletClient:        pki.KeyPair{Cert: d.Files[spec.KeyKubeletClient], Key: d.Files[spec.KeyKubeletClientKey]},
		CABundle:             d.Files[spec.KeyCABundle],
		ClientCABundle:       d.Files[spec.KeyClientCABundle],
		ServiceAccountKey:    d.Files[spec.KeyServiceAccountKey],
		ServiceAccountBundle: d.Files[spec.KeyServiceAccountBundle],
	}
}

// Phase is the phase of a control plane.
type Phase string

// The phases of a control plane.
const (
	// Stopped means that nothing is to run.
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

// Status is the observed state of a control plane.
type Status struct {
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
	// Controllers says whether Kubernetes' controllers run, ControllersMessage why they do not although they
	// should.
	Controllers        bool
	ControllersMessage string
}
