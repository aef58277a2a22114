package controllerinstallation

import (
	"cmp"
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
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/charts"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

const (
	// AccessSecretName is the name of the Secret in the extension's namespace with its token for the garden, as in
	// Gardener.
	AccessSecretName = "garden-access-extension"

	// tokenFile is the path of that token in the containers of extensions.
	tokenFile = charts.GardenMountPath + "/" + resourcesv1alpha1.DataKeyToken
	// labelCollectable marks immutable Secrets that may be deleted when nothing refers to them, as in Gardener.
	labelCollectable = "resources.gardener.cloud/garbage-collectable-reference"
)

func accessSecret(installation *corev1beta1.ControllerInstallation) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: NamespaceName(installation.Name), Name: AccessSecretName}}
}

// ServiceAccountName returns the name of an extension's ServiceAccount in the garden, in the namespace of the seed
// there.
func ServiceAccountName(installation string) string {
	return constants.ExtensionGardenServiceAccountPrefix + installation
}

// reconcileAccess creates the Secret for which the token requestor creates the extension's ServiceAccount and a token,
// or deletes the Secret if the extension needs no access.
func (r *Reconciler) reconcileAccess(ctx context.Context, installation *corev1beta1.ControllerInstallation, registration string,
	what *rendered) error {
	secret := accessSecret(installation)
	err := r.reconcileUnique(ctx, what.kubeconfig, constants.SecretNameGenericGardenKubeconfig, client.InNamespace(secret.Namespace))
	if err != nil {
		return err
	}
	if !what.access {
		if err := r.SeedClient.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Secret %s/%s in the seed: %w", secret.Namespace, secret.Name, err)
		}
		return nil
	}
	labels, _ := json.Marshal(map[string]string{constants.LabelControllerRegistrationName: registration}) // it can always be encoded
	return controllerutils.CreateOrPatch(ctx, r.SeedClient, r.SeedClient, secret, func(secret *corev1.Secret) error {
		secret.Type = cmp.Or(secret.Type, corev1.SecretTypeOpaque)
		metav1.SetMetaDataLabel(&secret.ObjectMeta, resourcesv1alpha1.ResourceManagerPurpose, resourcesv1alpha1.LabelPurposeTokenRequest)
		metav1.SetMetaDataLabel(&secret.ObjectMeta, resourcesv1alpha1.ResourceManagerClass, resourcesv1alpha1.ResourceManagerClassGarden)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountName, ServiceAccountName(installation.Name))
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountLabels, string(labels))
		delete(secret.Data, resourcesv1alpha1.DataKeyKubeconfig)
		return nil
	})
}

// genericKubeconfig returns the Secret with the kubeconfig for the garden that all pods of the extension share. The
// kubeconfig refers to the file with the token instead of containing the token. The name of the Secret contains a
// checksum of the data.
func (r *Reconciler) genericKubeconfig(namespace string) (*corev1.Secret, error) {
	data, err := controllerutils.Kubeconfig(r.GardenConfig, "extension", &clientcmdapi.AuthInfo{TokenFile: tokenFile})
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig for extensions: %w", err)
	}
	return unique(namespace, constants.SecretNameGenericGardenKubeconfig, resourcesv1alpha1.DataKeyKubeconfig, data), nil
}

// reconcileUnique ensures a Secret whose name contains a checksum of its data, and deletes its predecessors: the
// selected Secrets whose name has the same prefix.
func (r *Reconciler) reconcileUnique(ctx context.Context, wanted *corev1.Secret, name string, selected ...client.ListOption) error {
	all := &corev1.SecretList{}
	if err := r.SeedClient.List(ctx, all, append(selected, client.MatchingLabels{labelCollectable: "true"})...); err != nil {
		return fmt.Errorf("listing the Secrets %s in the seed: %w", name, err)
	}
	there := false
	for i := range all.Items {
		secret := &all.Items[i]
		switch {
		case !strings.HasPrefix(secret.Name, name+"-"):
		case wanted != nil && secret.Name == wanted.Name:
			there = true
		default:
			if err := r.SeedClient.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting the former Secret %s/%s in the seed: %w", secret.Namespace, secret.Name, err)
			}
		}
	}
	if wanted == nil || there {
		return nil
	}
	if err := r.SeedClient.Create(ctx, wanted); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating Secret %s/%s in the seed: %w", wanted.Namespace, wanted.Name, err)
	}
	return nil
}

// unique returns an immutable Secret whose name contains a checksum of its data.
func unique(namespace, name, key string, data []byte) *corev1.Secret {
	sum := sha256.Sum256(data)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + "-" + hex.EncodeToString(sum[:])[:8], Labels: map[string]string{labelCollectable: "true"},
		},
		Immutable: ptr.To(true),
		Data:      map[string][]byte{key: data},
	}
}
