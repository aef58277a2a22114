package controllerinstallation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// AccessSecretName is the Secret, in the extension's namespace, with its token for the garden; Gardener's.
	AccessSecretName = "garden-access-extension"

	// tokenFile is where extensions find that token; Gardener's.
	tokenFile = "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig/" + resourcesv1alpha1.DataKeyToken
	// labelCollectable is for Secrets that never change, and are of no use once nobody refers to them; Gardener's.
	labelCollectable = "resources.gardener.cloud/garbage-collectable-reference"
)

func accessSecret(installation *corev1beta1.ControllerInstallation) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: NamespaceName(installation.Name), Name: AccessSecretName}}
}

// ServiceAccountName is the name of an extension's ServiceAccount in the garden, in the seed's namespace there.
func ServiceAccountName(installation string) string {
	return constants.ExtensionGardenServiceAccountPrefix + installation
}

// reconcileAccess asks the token requestor for a token of the extension's ServiceAccount, or takes that away again. The
// ServiceAccount is the token requestor's business.
func (r *Reconciler) reconcileAccess(ctx context.Context, installation *corev1beta1.ControllerInstallation, registration string, needed bool) error {
	secret := accessSecret(installation)
	if !needed {
		if err := r.SeedClient.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Secret %s/%s in the seed: %w", secret.Namespace, secret.Name, err)
		}
		return r.reconcileKubeconfig(ctx, secret.Namespace, nil)
	}
	labels, err := json.Marshal(map[string]string{constants.LabelControllerRegistrationName: registration})
	if err != nil {
		return fmt.Errorf("encoding the labels of the ServiceAccount of ControllerInstallation %s: %w", installation.Name, err)
	}
	kubeconfig, err := r.genericKubeconfig(secret.Namespace)
	if err != nil {
		return err
	}
	if err := r.reconcileKubeconfig(ctx, secret.Namespace, kubeconfig); err != nil {
		return err
	}
	return createOrPatch(ctx, r.SeedClient, secret, func(secret *corev1.Secret) {
		if secret.Type == "" {
			secret.Type = corev1.SecretTypeOpaque
		}
		metav1.SetMetaDataLabel(&secret.ObjectMeta, resourcesv1alpha1.ResourceManagerPurpose, resourcesv1alpha1.LabelPurposeTokenRequest)
		metav1.SetMetaDataLabel(&secret.ObjectMeta, resourcesv1alpha1.ResourceManagerClass, resourcesv1alpha1.ResourceManagerClassGarden)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountName, ServiceAccountName(installation.Name))
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountLabels, string(labels))
		delete(secret.Data, resourcesv1alpha1.DataKeyKubeconfig)
	})
}

// genericKubeconfig is the Secret with the kubeconfig for the garden that all pods of the extension share. It names the
// file with the token instead of having one. Its name says what is in it.
func (r *Reconciler) genericKubeconfig(namespace string) (*corev1.Secret, error) {
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"garden": {
			Server: r.GardenConfig.Host, CertificateAuthorityData: r.GardenConfig.CAData, InsecureSkipTLSVerify: r.GardenConfig.Insecure,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"extension": {TokenFile: tokenFile}},
		Contexts:       map[string]*clientcmdapi.Context{"garden": {Cluster: "garden", AuthInfo: "extension"}},
		CurrentContext: "garden",
	})
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig for extensions: %w", err)
	}
	sum := sha256.Sum256(data)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: constants.SecretNameGenericGardenKubeconfig + "-" + hex.EncodeToString(sum[:])[:8],
			Labels: map[string]string{labelCollectable: "true"},
		},
		Immutable: ptr.To(true),
		Data:      map[string][]byte{resourcesv1alpha1.DataKeyKubeconfig: data},
	}, nil
}

// reconcileKubeconfig sees to it that this kubeconfig is there, and none of before.
func (r *Reconciler) reconcileKubeconfig(ctx context.Context, namespace string, wanted *corev1.Secret) error {
	all := &corev1.SecretList{}
	if err := r.SeedClient.List(ctx, all, client.InNamespace(namespace), client.MatchingLabels{labelCollectable: "true"}); err != nil {
		return fmt.Errorf("listing the kubeconfigs for the garden in the seed's namespace %s: %w", namespace, err)
	}
	there := false
	for i := range all.Items {
		secret := &all.Items[i]
		switch {
		case !strings.HasPrefix(secret.Name, constants.SecretNameGenericGardenKubeconfig+"-"):
		case wanted != nil && secret.Name == wanted.Name:
			there = true
		default:
			if err := r.SeedClient.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting Secret %s/%s, a kubeconfig of before, in the seed: %w", namespace, secret.Name, err)
			}
		}
	}
	if wanted == nil || there {
		return nil
	}
	if err := r.SeedClient.Create(ctx, wanted); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating Secret %s/%s in the seed: %w", namespace, wanted.Name, err)
	}
	return nil
}
