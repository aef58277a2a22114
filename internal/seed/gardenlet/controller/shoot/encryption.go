package shoot

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/retry"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// rewriteBatch is the number of objects that are listed at a time to be encrypted again.
const rewriteBatch = 500

// nothingNew is a patch that changes nothing. The API server writes the object nevertheless if it is not encrypted with
// the current configuration.
const nothingNew = "{}"

// encryptionConfig returns the configuration of the encryption that a Shoot wants, an empty one if it has none.
func encryptionConfig(shoot *corev1beta1.Shoot) corev1beta1.EncryptionConfig {
	if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil && server.EncryptionConfig != nil {
		return *server.EncryptionConfig
	}
	return corev1beta1.EncryptionConfig{}
}

// encryptionProvider returns the encryption provider that a Shoot wants, Gardener's default if it names none.
func encryptionProvider(shoot *corev1beta1.Shoot) corev1beta1.EncryptionProviderType {
	return ptr.Deref(encryptionConfig(shoot).Provider.Type, corev1beta1.EncryptionProviderTypeAESCBC)
}

// resourcesToEncrypt returns the resources that a Shoot wants to be encrypted in addition to Secrets, with unique
// names.
func resourcesToEncrypt(shoot *corev1beta1.Shoot) []string {
	return resourceNames(encryptionConfig(shoot).Resources)
}

func resourceNames(resources []string) (names []string) {
	for _, resource := range resources {
		names = append(names, schema.ParseGroupResource(resource).String())
	}
	return names
}

// encryptionAtRest returns what a status reports about the encryption, nil if nothing.
func encryptionAtRest(s *corev1beta1.ShootStatus) *corev1beta1.EncryptionAtRest {
	if s.Credentials == nil {
		return nil
	}
	return s.Credentials.EncryptionAtRest
}

// encryptedResources returns the resources that, according to a status, may be encrypted in addition to Secrets.
func encryptedResources(s *corev1beta1.ShootStatus) []string {
	if has := encryptionAtRest(s); has != nil {
		return resourceNames(has.Resources)
	}
	return nil
}

// encryptionConfiguration returns the EncryptionConfiguration of the API server. Resources that are no longer to be
// encrypted can still be decrypted until all their objects are rewritten.
func (b *botanist) encryptionConfiguration() ([]byte, error) {
	keys := []map[string][]byte{b.encryption.Current}
	if old := b.encryption.Old; old != nil && string(old[shootsecrets.KeySecret]) != string(b.encryption.Current[shootsecrets.KeySecret]) {
		keys = append(keys, old)
		if b.encryption.Stage == shootsecrets.EncryptsNothing {
			slices.Reverse(keys)
		}
	}
	var providers []apiserverv1.ProviderConfiguration
	for _, key := range keys {
		provider, err := encryptionWith(key)
		if err != nil {
			return nil, err
		}
		providers = append(providers, provider)
	}
	plain, wanted := apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}, resourcesToEncrypt(b.shoot)
	config := apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{
			{Resources: append([]string{corev1.ResourceSecrets.String()}, wanted...),
				Providers: slices.Concat(providers, []apiserverv1.ProviderConfiguration{plain})},
		},
	}
	gone := slices.DeleteFunc(encryptedResources(&b.shoot.Status), func(name string) bool { return slices.Contains(wanted, name) })
	if len(gone) > 0 {
		config.Resources = append(config.Resources,
			apiserverv1.ResourceConfiguration{Resources: gone, Providers: slices.Concat([]apiserverv1.ProviderConfiguration{plain}, providers)})
	}
	return json.Marshal(config)
}

// encryptionWith returns the provider configuration for a key.
func encryptionWith(key map[string][]byte) (apiserverv1.ProviderConfiguration, error) {
	keys := []apiserverv1.Key{
		{Name: string(key[shootsecrets.KeyName]), Secret: base64.StdEncoding.EncodeToString(key[shootsecrets.KeySecret])}}
	switch provider := shootsecrets.Provider(key); provider {
	case corev1beta1.EncryptionProviderTypeAESCBC:
		return apiserverv1.ProviderConfiguration{AESCBC: &apiserverv1.AESConfiguration{Keys: keys}}, nil
	case corev1beta1.EncryptionProviderTypeAESGCM:
		return apiserverv1.ProviderConfiguration{AESGCM: &apiserverv1.AESConfiguration{Keys: keys}}, nil
	case corev1beta1.EncryptionProviderTypeSecretbox:
		return apiserverv1.ProviderConfiguration{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: keys}}, nil
	default:
		return apiserverv1.ProviderConfiguration{}, fmt.Errorf("the encryption provider %q of the ETCD encryption key is not known", provider)
	}
}

// encryptWithNewKey makes the API server encrypt with a new key, with which it could only decrypt until now, and waits
// until it does.
func (b *botanist) encryptWithNewKey(ctx context.Context) error {
	if b.encryption.Stage == shootsecrets.EncryptsNothing && b.encryption.Old != nil {
		if err := b.secrets().SetEncryptionStage(ctx, &b.encryption, shootsecrets.EncryptsNew); err != nil {
			return err
		}
		b.switching = true
	}
	if !b.switching {
		return nil
	}
	if err := b.deployAPIServer(ctx); err != nil {
		return err
	}
	return b.rolledOut(spec.APIServer)(ctx)
}

// encryptAll makes the API server rewrite everything that may not be encrypted as wanted, and reports the result in the
// status. After an interruption it begins again, but objects that are encrypted as wanted are not written.
func (b *botanist) encryptAll(ctx context.Context) error {
	wanted, before, has := resourcesToEncrypt(b.shoot), encryptedResources(&b.shoot.Status), encryptionAtRest(&b.shoot.Status)
	provider := shootsecrets.Provider(b.encryption.Current)
	told := has != nil && sets.New(wanted...).Equal(sets.New(before...)) && has.Provider.Type == provider
	if told && b.encryption.Stage == shootsecrets.EncryptsAll {
		return nil
	}
	all := sets.New(wanted...).Insert(before...).Insert(corev1.ResourceSecrets.String())
	resources, err := b.versionsOf(ctx, all)
	if err != nil {
		return err
	}
	for _, resource := range resources {
		if err := rewrite(ctx, b.shootClient.Metadata.Resource(resource)); err != nil {
			return fmt.Errorf("encrypting the %s of the shoot anew: %w", resource.GroupResource(), err)
		}
	}
	if b.encryption.Stage != shootsecrets.EncryptsAll {
		if err := b.secrets().SetEncryptionStage(ctx, &b.encryption, shootsecrets.EncryptsAll); err != nil {
			return err
		}
	}
	return b.patchShootStatus(ctx, func(shoot *corev1beta1.Shoot) {
		initialized(&shoot.Status.Credentials).EncryptionAtRest = &corev1beta1.EncryptionAtRest{
			Resources: wanted, Provider: corev1beta1.EncryptionProviderStatus{Type: provider}}
	})
}

// definitions is the resource of CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// versionsOf returns resources with a version that the shoot serves. It omits unknown resources. It returns Pending for
// a custom resource that is defined but not served, maybe because the API server has just started.
func (b *botanist) versionsOf(ctx context.Context, names sets.Set[string]) (all []schema.GroupVersionResource, err error) {
	lists, err := b.shootClient.Resources()
	if err != nil {
		return nil, fmt.Errorf("asking the shoot for its resources: %w", err)
	}
	left := names.Clone()
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("asking the shoot for its resources: %w", err)
		}
		for _, resource := range list.APIResources {
			served := version.WithResource(resource.Name)
			if name := served.GroupResource().String(); left.Has(name) && !strings.Contains(resource.Name, "/") {
				left.Delete(name)
				all = append(all, served)
			}
		}
	}
	for _, name := range sets.List(left) {
		_, err := b.shootClient.Metadata.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			return nil, flow.Pending("CustomResourceDefinition %s of the shoot is not served, and its objects are to be encrypted anew", name)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("asking the shoot for CustomResourceDefinition %s: %w", name, err)
		}
	}
	return all, nil
}

// rewrite makes the API server check every object of a resource, and write those that are not encrypted as wanted.
func rewrite(ctx context.Context, resource metadata.Getter) error {
	for from := ""; ; {
		list, err := resource.List(ctx, metav1.ListOptions{Limit: rewriteBatch, Continue: from})
		if err != nil {
			return fmt.Errorf("listing them: %w", err)
		}
		for _, object := range list.Items {
			err := retry.OnConflict(ctx, func() error {
				_, err := resource.Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, []byte(nothingNew), metav1.PatchOptions{})
				return err
			})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("writing %s: %w", types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, err)
			}
		}
		if from = list.Continue; from == "" {
			return nil
		}
	}
}
