package graph

import (
	"encoding/json"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// References returns the objects to which an object refers, without duplicates: those with an edge to it, those that
// will have an edge to the Seed of its template, and the Secrets without edges that Shoots and Gardenlets can name. It
// returns an error if the configuration in a ManagedSeed or Gardenlet is invalid.
func References(obj any) (refs []Vertex, err error) {
	switch o := obj.(type) {
	case *seedmanagementv1alpha1.ManagedSeed:
		refs, err = templateReferences(o.Name, o.Spec.Gardenlet.Config)
	case *seedmanagementv1alpha1.Gardenlet:
		refs, err = templateReferences(o.Name, o.Spec.Config)
		chart := &o.Spec.Deployment.Helm.OCIRepository
		for _, ref := range []*corev1.LocalObjectReference{chart.PullSecretRef, chart.CABundleSecretRef} {
			if ref != nil { // also in namespaces in which it causes no edge
				refs = append(refs, Vertex{Kind: KindSecret, Namespace: o.Namespace, Name: ref.Name})
			}
		}
	case *gardencorev1beta1.Shoot:
		refs = append(edgesTo(o), secretsWithoutEdges(o)...)
	default:
		refs = edgesTo(o)
	}
	known := map[Vertex]bool{}
	return slices.DeleteFunc(refs, func(v Vertex) bool {
		omitted := known[v] || v.Name == ""
		known[v] = true
		return omitted
	}), err
}

// edgesTo returns the vertices with an edge to the object that the object causes itself.
func edgesTo(obj any) (from []Vertex) {
	owner, edges, _ := EdgesOf(obj, nil)
	for _, e := range edges {
		if e.To == owner {
			from = append(from, e.From)
		}
	}
	return from
}

func secretsWithoutEdges(shoot *gardencorev1beta1.Shoot) (all []Vertex) {
	add := func(name *string) {
		if name != nil {
			all = append(all, Vertex{Kind: KindSecret, Namespace: shoot.Namespace, Name: *name})
		}
	}
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			add(provider.SecretName)
		}
	}
	if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil {
		for _, plugin := range server.AdmissionPlugins {
			add(plugin.KubeconfigSecretName)
		}
	}
	return all
}

// templateReferences returns the objects to which a Seed of the template in a gardenlet's configuration refers, without
// those of every Seed.
func templateReferences(name string, config runtime.RawExtension) (refs []Vertex, err error) {
	templates, err := SeedTemplates(config)
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
	every := map[Vertex]bool{}
	for _, v := range edgesTo(seed) {
		every[v] = true
	}
	for _, spec := range templates {
		seed.Spec = spec
		for _, v := range edgesTo(seed) {
			if !every[v] {
				refs = append(refs, v)
			}
		}
	}
	return refs, err
}

// SeedTemplates returns the seed template in a gardenlet's configuration. The API server does not decode it, and other
// readers may or may not be case-sensitive: so it is decoded in both ways.
func SeedTemplates(config runtime.RawExtension) (templates []gardencorev1beta1.SeedSpec, err error) {
	data := config.Raw
	if data == nil && config.Object != nil {
		if data, err = json.Marshal(config.Object); err != nil {
			return nil, fmt.Errorf("reading the gardenlet's configuration: %w", err)
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	for _, unmarshal := range []func([]byte, any) error{utiljson.Unmarshal, json.Unmarshal} {
		var gardenlet struct {
			SeedConfig struct {
				Spec gardencorev1beta1.SeedSpec `json:"spec"`
			} `json:"seedConfig"`
		}
		if err := unmarshal(data, &gardenlet); err != nil {
			return nil, fmt.Errorf("reading the gardenlet's configuration: %w", err)
		}
		templates = append(templates, gardenlet.SeedConfig.Spec)
	}
	return templates, nil
}
