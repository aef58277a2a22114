package landscape

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
)

// UserKubeconfig returns a kubeconfig for another user of the garden, derived from the administrator's. It needs no
// running landscape: the certificate is signed with the authority's key in the state directory.
func UserKubeconfig(dir string, admin *clientcmdapi.Config, user string, groups []string, life time.Duration) (
	*clientcmdapi.Config, error) {
	context := admin.Contexts[admin.CurrentContext]
	if context == nil || admin.Clusters[context.Cluster] == nil {
		return nil, errors.New("the landscape's kubeconfig has no current context: start the landscape again, and it is written anew")
	}
	cluster := admin.Clusters[context.Cluster]
	signer, err := pki.OpenSigner(filepath.Join(dir, statedir.PKIFolder, gardenCluster), clock.RealClock{})
	if err != nil {
		return nil, err
	}
	certPEM, keyPEM, err := signer.Issue(user, groups, life)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", user, err)
	}
	return controlplane.Kubeconfig(admin.CurrentContext+"-"+user, cluster.Server, cluster.CertificateAuthorityData, certPEM, keyPEM), nil
}
