// Package bootstraptoken creates the bootstrap token with which the gardenlet of one seed gets its first certificate.
// It may import the rules of the TLS bootstrapping and the csrapprover, which recognizes a token by its description.
package bootstraptoken

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstraptokenapi "k8s.io/cluster-bootstrap/token/api"
	bootstraptokenutil "k8s.io/cluster-bootstrap/token/util"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/csrapprover"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// The default, the shortest and the longest validity of a bootstrap token.
const (
	DefaultLife = 24 * time.Hour
	minLife     = time.Minute
	maxLife     = 30 * 24 * time.Hour
)

// Token is the bootstrap token with which a new gardenlet requests its first certificate.
type Token struct {
	Seed string `json:"seed"`
	// ID is the public part of the token; its Secret is kube-system/bootstrap-token-ID.
	ID         string    `json:"id"`
	Expiration time.Time `json:"expiration"`
	// Kubeconfig is the bootstrap kubeconfig, which contains the token.
	Kubeconfig []byte `json:"-"`
}

// Validate returns a usage error if the name of the seed or the validity of its token is not allowed.
func Validate(seedName string, life time.Duration) error {
	if problems := validation.IsDNS1123Subdomain(seedName); len(problems) > 0 {
		return &usage.Error{Err: fmt.Errorf("--seed %q: %s", seedName, problems[0])}
	}
	if life < minLife || life > maxLife {
		return &usage.Error{Err: fmt.Errorf("--ttl %s: between %s and %s", life, minLife, maxLife)}
	}
	return nil
}

// Create creates a bootstrap token that is valid only for the gardenlet of this seed. It replaces an existing token
// of the seed. The token's ID is derived from the name of the seed, so that the gardenlet is allowed to delete the
// token in the end.
func Create(ctx context.Context, config *rest.Config, seedName string, life time.Duration, now clock.PassiveClock) (*Token, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	random, err := bootstraptokenutil.GenerateBootstrapToken()
	if err != nil {
		return nil, fmt.Errorf("making a bootstrap token: %w", err)
	}
	id, key := bootstraprules.TokenID(constants.GardenNamespace, seedName),
		bootstraptokenutil.BootstrapTokenRegexp.FindStringSubmatch(random)[2]
	t := &Token{Seed: seedName, ID: string(id[:]), Expiration: now.Now().Add(life).UTC().Truncate(time.Second)}
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

// Delete deletes all bootstrap tokens for the gardenlet of a seed.
func Delete(ctx context.Context, client kubernetes.Interface, seedName string) error {
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	list, err := secrets.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("type", string(corev1.SecretTypeBootstrapToken)).String()})
	if err != nil {
		return fmt.Errorf("listing the bootstrap tokens: %w", err)
	}
	var errs []error
	for i := range list.Items {
		token := &list.Items[i]
		if csrapprover.DescribedSeed(string(token.Data[bootstraptokenapi.BootstrapTokenDescriptionKey])) == seedName {
			if err := secrets.Delete(ctx, token.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
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
