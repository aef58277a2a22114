package managedseedset

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// placeholder is replaced by the name of the replica in domains of the templates, as in Gardener.
const placeholder = "replica-name"

// replicaMeta returns the metadata for the Shoot or the ManagedSeed of a replica.
func replicaMeta(set *seedmanagementv1alpha1.ManagedSeedSet, name string, template metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: set.Namespace, Name: name,
		Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(set, seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeedSet")),
		},
	}
}

// newShoot returns the Shoot of a replica.
func newShoot(set *seedmanagementv1alpha1.ManagedSeedSet, name string) *corev1beta1.Shoot {
	template := set.Spec.ShootTemplate.DeepCopy()
	shoot := &corev1beta1.Shoot{ObjectMeta: replicaMeta(set, name, template.ObjectMeta), Spec: template.Spec}
	if dns := shoot.Spec.DNS; dns != nil && dns.Domain != nil {
		*dns.Domain = strings.ReplaceAll(*dns.Domain, placeholder, name)
	}
	return shoot
}

// newManagedSeed returns the ManagedSeed of a replica, for the Shoot of the same name.
func newManagedSeed(set *seedmanagementv1alpha1.ManagedSeedSet, name string) (*seedmanagementv1alpha1.ManagedSeed, error) {
	template := set.Spec.Template.DeepCopy()
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: replicaMeta(set, name, template.ObjectMeta), Spec: template.Spec}
	managedSeed.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: name}
	config, err := withName(managedSeed.Spec.Gardenlet.Config, name)
	if err != nil {
		return nil, fmt.Errorf("reading the gardenlet's configuration in spec.template: %w", err)
	}
	managedSeed.Spec.Gardenlet.Config = config
	return managedSeed, nil
}

// withName replaces the placeholder in the Seed's ingress domain of a gardenlet's configuration. It does not change
// other fields.
func withName(config runtime.RawExtension, name string) (runtime.RawExtension, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return config, err
	}
	content := map[string]any{}
	if err := json.Unmarshal(raw, &content); err != nil {
		return config, err
	}
	path := []string{"seedConfig", "spec", "ingress", "domain"}
	domain, found, err := unstructured.NestedString(content, path...)
	if err != nil || !found || !strings.Contains(domain, placeholder) {
		return config, err
	}
	if err := unstructured.SetNestedField(content, strings.ReplaceAll(domain, placeholder, name), path...); err != nil {
		return config, err
	}
	raw, err = json.Marshal(content)
	return runtime.RawExtension{Raw: raw}, err
}
