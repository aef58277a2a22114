package graph

import (
	"fmt"
	"strings"
)

// Kind is the kind of a vertex's object.
type Kind uint8

// The kinds of the graph. The zero Kind is no kind.
const (
	_ Kind = iota
	KindSeed
	KindShoot
	KindNamespace
	KindSecret
	KindConfigMap
	KindCloudProfile
	KindNamespacedCloudProfile
	KindSecretBinding
	KindCredentialsBinding
	KindExposureClass
	KindWorkloadIdentity
	KindInternalSecret
	KindShootState
	KindManagedSeed
	KindGardenlet
	KindBastion
	KindBackupBucket
	KindBackupEntry
	KindControllerInstallation
	KindControllerRegistration
	KindControllerDeployment
	KindProject
	KindCertificateSigningRequest
	KindServiceAccount
	KindClusterRoleBinding
	KindLease
	kindCount
)

var kindNames = [kindCount]string{
	KindSeed: "Seed", KindShoot: "Shoot", KindNamespace: "Namespace", KindSecret: "Secret", KindConfigMap: "ConfigMap",
	KindCloudProfile: "CloudProfile", KindNamespacedCloudProfile: "NamespacedCloudProfile",
	KindSecretBinding: "SecretBinding", KindCredentialsBinding: "CredentialsBinding", KindExposureClass: "ExposureClass",
	KindWorkloadIdentity: "WorkloadIdentity", KindInternalSecret: "InternalSecret", KindShootState: "ShootState",
	KindManagedSeed: "ManagedSeed", KindGardenlet: "Gardenlet", KindBastion: "Bastion",
	KindBackupBucket: "BackupBucket", KindBackupEntry: "BackupEntry",
	KindControllerInstallation: "ControllerInstallation", KindControllerRegistration: "ControllerRegistration",
	KindControllerDeployment: "ControllerDeployment", KindProject: "Project",
	KindCertificateSigningRequest: "CertificateSigningRequest", KindServiceAccount: "ServiceAccount",
	KindClusterRoleBinding: "ClusterRoleBinding", KindLease: "Lease",
}

// rank orders the kinds: edges lead from a lower to a higher rank, except those that leave a Seed (graph.go).
func (k Kind) rank() int {
	switch k {
	case KindSecret, KindConfigMap, KindInternalSecret, KindWorkloadIdentity, KindProject:
		return 0
	case KindManagedSeed, KindBackupEntry, KindControllerInstallation:
		return 2
	case KindShoot:
		return 3
	case KindSeed:
		return 4
	}
	return 1
}

// String returns the kind as in the API, for example "CloudProfile".
func (k Kind) String() string {
	if k == 0 || k >= kindCount {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// ParseKind returns the kind with this name, case-insensitively, and whether there is one.
func ParseKind(name string) (Kind, bool) {
	for _, kind := range Kinds() {
		if strings.EqualFold(kindNames[kind], name) {
			return kind, true
		}
	}
	return 0, false
}

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, 0, kindCount-1)
	for kind := KindSeed; kind < kindCount; kind++ {
		all = append(all, kind)
	}
	return all
}

// MarshalText returns the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses the name of a kind.
func (k *Kind) UnmarshalText(text []byte) error {
	kind, ok := ParseKind(string(text))
	if !ok {
		return fmt.Errorf("%q is no kind of the resource dependency graph", text)
	}
	*k = kind
	return nil
}
