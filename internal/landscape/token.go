package landscape

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstraptokenapi "k8s.io/cluster-bootstrap/token/api"
	bootstraptokenutil "k8s.io/cluster-bootstrap/token/util"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/bootstrapping"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/csrapprover"
)

// How long a bootstrap token is valid: by default, and at least and at most.
const (
	DefaultTokenLife = 24 * time.Hour
	minTokenLife     = time.Minute
	maxTokenLife     = 30 * 24 * time.Hour
)

// BootstrapToken is what a new gardenlet gets its first certificate with.
type BootstrapToken struct {
	Seed string `json:"seed"`
	// ID is the public part of the token; its Secret is kube-system/bootstrap-token-ID.
	ID         string    `json:"id"`
	Expiration time.Time `json:"expiration"`
	// Kubeconfig has the token in it.
	Kubeconfig []byte `json:"-"`
}

// ValidateToken says what is wrong with a seed's name, or how long a token for it is to live.
func ValidateToken(seedName string, life time.Duration) error {
	if problems := validation.IsDNS1123Subdomain(seedName); len(problems) > 0 {
		return &UsageError{Err: fmt.Errorf("--seed %q: %s", seedName, problems[0])}
	}
	if life < minTokenLife || life > maxTokenLife {
		return &UsageError{Err: fmt.Errorf("--ttl %s: between %s and %s", life, minTokenLife, maxTokenLife)}
	}
	return nil
}

// CreateToken makes a bootstrap token for the gardenlet of a seed, and for no other one. One that there is for the seed is
// replaced. Its ID follows from the seed's name, because of which the gardenlet may delete it in the end.
func CreateToken(ctx context.Context, config *rest.Config, seedName string, life time.Duration, now clock.PassiveClock) (
	*BootstrapToken, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	random, err := bootstraptokenutil.GenerateBootstrapToken()
	if err != nil {
		return nil, fmt.Errorf("making a bootstrap token: %w", err)
	}
	id, key := bootstrapping.TokenID(constants.GardenNamespace, seedName),
		bootstraptokenutil.BootstrapTokenRegexp.FindStringSubmatch(random)[2]
	t := &BootstrapToken{Seed: seedName, ID: string(id[:]), Expiration: now.Now().Add(life).UTC().Truncate(time.Second)}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraptokenutil.BootstrapTokenSecretName(t.ID)},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstraptokenapi.BootstrapTokenIDKey:               t.ID,
			bootstraptokenapi.BootstrapTokenSecretKey:           key,
			bootstraptokenapi.BootstrapTokenDescriptionKey:      csrapprover.TokenDescription(seedName),
			bootstraptokenapi.BootstrapTokenExpirationKey:       t.Expiration.Format(time.RFC3339),
			bootstraptokenapi.BootstrapTokenUsageAuthentication: "true",
			bootstraptokenapi.BootstrapTokenUsageSigningKey:     "true",
		},
	}
	secrets := client.CoreV1().Secrets(secret.Namespace)
	_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("writing a bootstrap token for seed %s: %w", seedName, err)
	}
	t.Kubeconfig, err = bootstrapKubeconfig(config, bootstraptokenutil.TokenFromIDAndSecret(t.ID, key))
	return t, err
}

func bootstrapKubeconfig(config *rest.Config, token string) ([]byte, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the garden's authority: %w", err)
	}
	const garden, gardenlet = "garden", "gardenlet-bootstrap"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{garden: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{gardenlet: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{gardenlet: {Cluster: garden, AuthInfo: gardenlet}},
		CurrentContext: gardenlet,
	})
}
