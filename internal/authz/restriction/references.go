package restriction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
)

// use is what a reference is for.
type use string

const (
	backup   use = "backup"
	dns      use = "DNS"
	resource use = "resources"
	chart    use = "its Helm chart"
)

// reference is one that opens, in the dependency graph, a path from what it names to a seed.
type reference struct {
	kind, namespace, name string
	use                   use
}

func (r reference) String() string {
	return fmt.Sprintf("%s %s (for %s)", r.kind, key(r.namespace, r.name), r.use)
}

// sameObject says whether two references name the same object, whatever for.
func (r reference) sameObject(other reference) bool {
	other.use = r.use
	return r == other
}

func credentials(ref *corev1.ObjectReference, of use) []reference {
	if ref == nil {
		return nil
	}
	return []reference{{ref.Kind, ref.Namespace, ref.Name, of}}
}

func bucketReferences(spec *corev1beta1.BackupBucketSpec) []reference {
	return credentials(spec.CredentialsRef, backup)
}

func seedReferences(spec *corev1beta1.SeedSpec) []reference {
	var refs []reference
	if spec.Backup != nil {
		refs = append(refs, credentials(spec.Backup.CredentialsRef, backup)...)
	}
	if spec.DNS.Provider != nil {
		refs = append(refs, credentials(spec.DNS.Provider.CredentialsRef, dns)...)
	}
	if spec.DNS.Internal != nil {
		refs = append(refs, credentials(&spec.DNS.Internal.CredentialsRef, dns)...)
	}
	for i := range spec.DNS.Defaults {
		refs = append(refs, credentials(&spec.DNS.Defaults[i].CredentialsRef, dns)...)
	}
	for _, named := range spec.Resources {
		refs = append(refs, reference{named.ResourceRef.Kind, constants.GardenNamespace, named.ResourceRef.Name, resource})
	}
	return refs
}

func managedSeedReferences(managedSeed *seedmanagementv1alpha1.ManagedSeed) ([]reference, error) {
	return templateReferences(managedSeed.Spec.Gardenlet.Config)
}

func gardenletReferences(gardenlet *seedmanagementv1alpha1.Gardenlet) ([]reference, error) {
	refs, err := templateReferences(gardenlet.Spec.Config)
	chartSource := &gardenlet.Spec.Deployment.Helm.OCIRepository
	for _, ref := range []*corev1.LocalObjectReference{chartSource.PullSecretRef, chartSource.CABundleSecretRef} {
		if ref != nil {
			refs = append(refs, reference{"Secret", gardenlet.Namespace, ref.Name, chart})
		}
	}
	return refs, err
}

// templateReferences are those of the seed template in a gardenlet's configuration. The configuration is not decoded by
// the API server, so a decoder may or may not tell upper from lower case in it: what either way finds counts.
func templateReferences(raw runtime.RawExtension) ([]reference, error) {
	data := raw.Raw
	if data == nil && raw.Object != nil {
		encoded, err := json.Marshal(raw.Object)
		if err != nil {
			return nil, badRequest("reading the gardenlet's configuration: %v", err)
		}
		data = encoded
	}
	if len(data) == 0 {
		return nil, nil
	}
	var refs []reference
	for _, unmarshal := range []func([]byte, any) error{utiljson.Unmarshal, json.Unmarshal} {
		var config struct {
			SeedConfig *struct {
				Spec corev1beta1.SeedSpec `json:"spec"`
			} `json:"seedConfig"`
		}
		if err := unmarshal(data, &config); err != nil {
			return nil, badRequest("reading the gardenlet's configuration: %v", err)
		}
		if config.SeedConfig != nil {
			refs = append(refs, seedReferences(&config.SeedConfig.Spec)...)
		}
	}
	return refs, nil
}

// mayAdd wants that an update adds no reference, but one that somebody else made for the seed: with the Seed as it is now,
// or the ManagedSeed or Gardenlet that it comes of.
func (r *request) mayAdd(ctx context.Context, old, new []reference) error {
	return r.eachAdded(old, new, func(ref reference) error {
		known, err := r.alreadyRefersTo(ctx, ref)
		if err != nil || known {
			return err
		}
		return forbidden("%s: this adds a reference to %s; who may read that has to make it, in the Seed, ManagedSeed or Gardenlet %s", foreign(r.seed), ref, r.seed)
	})
}

func (r *request) eachAdded(old, new []reference, decide func(reference) error) error {
	for i, ref := range new {
		if slices.ContainsFunc(old, ref.sameObject) || slices.ContainsFunc(new[:i], ref.sameObject) {
			continue
		}
		if err := decide(ref); err != nil {
			return err
		}
	}
	return nil
}

// mayBring wants that the references of a new object are to nothing that is recognizably somebody else's. A gardenlet
// that registers its Seed brings them from its configuration, so they need not be known before.
func (r *request) mayBring(ctx context.Context, refs []reference) error {
	return r.eachAdded(nil, refs, func(ref reference) error {
		known, err := r.alreadyRefersTo(ctx, ref)
		if err != nil || known {
			return err
		}
		owner, err := r.ownerOf(ctx, ref)
		if err != nil || owner == "" {
			return err
		}
		return forbidden("%s: it refers to %s, which is %s; if seed %q is to have it as well, who may read it has to create the Seed or Gardenlet", foreign(r.seed), ref, owner, r.seed)
	})
}

// alreadyRefersTo says whether the seed has a reference anyway.
func (r *request) alreadyRefersTo(ctx context.Context, ref reference) (bool, error) {
	seed := &corev1beta1.Seed{}
	found, err := r.find(ctx, seeds.resource, "", r.seed, seed)
	if err != nil {
		return false, err
	}
	if found && slices.ContainsFunc(seedReferences(&seed.Spec), ref.sameObject) {
		return true, nil
	}
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if found, err = r.find(ctx, managedSeeds.resource, constants.GardenNamespace, r.seed, managedSeed); err != nil {
		return false, err
	}
	if found {
		if refs, err := managedSeedReferences(managedSeed); err == nil && slices.ContainsFunc(refs, ref.sameObject) {
			return true, nil
		}
	}
	gardenlet := &seedmanagementv1alpha1.Gardenlet{}
	if found, err = r.find(ctx, gardenlets.resource, constants.GardenNamespace, r.seed, gardenlet); err != nil || !found {
		return false, err
	}
	gardenlet.Namespace = constants.GardenNamespace
	refs, err := gardenletReferences(gardenlet)
	return err == nil && slices.ContainsFunc(refs, ref.sameObject), nil
}

func isRefusal(err error) bool {
	var no *refusal
	return errors.As(err, &no)
}

// shootReferences are those that a Shoot makes in its namespace, and to its cloud profile, exposure class and binding.
func shootReferences(shoot *corev1beta1.Shoot) []reference {
	var refs []reference
	add := func(kind string, name *string) {
		if ptr.Deref(name, "") != "" {
			refs = append(refs, reference{kind, shoot.Namespace, *name, resource})
		}
	}
	spec := &shoot.Spec
	add("CloudProfile", spec.CloudProfileName)
	if ref := spec.CloudProfile; ref != nil {
		kind := ref.Kind
		if kind == "" {
			kind = constants.CloudProfileReferenceKindCloudProfile
		}
		add(kind, &ref.Name)
	}
	add("SecretBinding", spec.SecretBindingName)
	add("CredentialsBinding", spec.CredentialsBindingName)
	add("ExposureClass", spec.ExposureClassName)
	for i := range spec.Resources {
		add(spec.Resources[i].ResourceRef.Kind, &spec.Resources[i].ResourceRef.Name)
	}
	if spec.DNS != nil {
		for i := range spec.DNS.Providers {
			provider := &spec.DNS.Providers[i]
			add("Secret", provider.SecretName)
			if ref := provider.CredentialsRef; ref != nil {
				add(ref.Kind, &ref.Name)
			}
		}
	}
	if server := spec.Kubernetes.KubeAPIServer; server != nil {
		addKubeAPIServerReferences(server, add)
	}
	return refs
}

func addKubeAPIServerReferences(server *corev1beta1.KubeAPIServerConfig, add func(kind string, name *string)) {
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		add("ConfigMap", &audit.AuditPolicy.ConfigMapRef.Name)
	}
	if authentication := server.StructuredAuthentication; authentication != nil {
		add("ConfigMap", &authentication.ConfigMapName)
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		add("ConfigMap", &authorization.ConfigMapName)
		for i := range authorization.Kubeconfigs {
			add("Secret", &authorization.Kubeconfigs[i].SecretName)
		}
	}
	for i := range server.AdmissionPlugins {
		add("Secret", server.AdmissionPlugins[i].KubeconfigSecretName)
	}
}

// sameManagedSeedSpec compares the configuration in it as what it says, because the API server may have written it
// differently. That is not all: of a field that is there twice, another reader may take what this one does not, so no
// reading may find a reference that was not there before.
func sameManagedSeedSpec(managedSeed, old *seedmanagementv1alpha1.ManagedSeed) (bool, error) {
	if !sameJSON(managedSeed.Spec.Gardenlet.Config, old.Spec.Gardenlet.Config) {
		return false, nil
	}
	refs, err := managedSeedReferences(managedSeed)
	if err != nil {
		return false, err
	}
	before, err := managedSeedReferences(old)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(refs, func(ref reference) bool { return !slices.Contains(before, ref) }) {
		return false, nil
	}
	a, b := managedSeed.Spec.DeepCopy(), old.Spec.DeepCopy()
	a.Gardenlet.Config, b.Gardenlet.Config = runtime.RawExtension{}, runtime.RawExtension{}
	return same(a, b), nil
}

func sameJSON(a, b runtime.RawExtension) bool {
	if len(a.Raw) == 0 || len(b.Raw) == 0 {
		return len(a.Raw) == len(b.Raw)
	}
	var left, right any
	return utiljson.Unmarshal(a.Raw, &left) == nil && utiljson.Unmarshal(b.Raw, &right) == nil && same(left, right)
}
