package resourcemanager

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/andybalholm/brotli"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// target is the cluster to which objects are applied.
type target struct {
	client.Client
	// reader reads directly from the cluster, not from a cache.
	reader client.Reader
	// watched says that changes of the objects trigger reconciliations.
	watched bool
}

// wanted is the content of a ManagedResource's Secrets.
type wanted struct {
	objects    []*unstructured.Unstructured
	references []resourcesv1alpha1.ObjectReference
	// released are the objects that are not managed any more, but are not deleted either.
	released    []resourcesv1alpha1.ObjectReference
	undecodable []string
	checksum    string
}

// read returns the objects in the Secrets of a ManagedResource, in the order in which they are to be applied.
func (r *Reconciler) read(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, target *target) (*wanted, error) {
	w, sum := &wanted{}, sha256.New()
	for _, ref := range resource.Spec.SecretRefs {
		secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: resource.Namespace, Name: ref.Name}
		if err := r.Reader.Get(ctx, key, secret); err != nil {
			return nil, fmt.Errorf("reading Secret %s, which has objects of the ManagedResource: %w", key, err)
		}
		for _, file := range slices.Sorted(maps.Keys(secret.Data)) {
			sum.Write(secret.Data[file])
			where := fmt.Sprintf("Secret %s, key %s", key, file)
			data, err := decompress(file, secret.Data[file])
			if err == nil {
				err = w.decode(data, func(obj *unstructured.Unstructured) { target.prepare(resource, obj) })
			}
			if err != nil {
				w.undecodable = append(w.undecodable, fmt.Sprintf("%s: %v", where, err))
			}
		}
	}
	w.checksum = hex.EncodeToString(sum.Sum(nil))
	slices.SortStableFunc(w.objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	slices.SortFunc(w.references, func(a, b resourcesv1alpha1.ObjectReference) int { return cmp.Compare(text(a), text(b)) })
	return w, nil
}

// maxSize limits what compressed data may become. Gardener's largest, the CRDs of its monitoring, is 6 MiB.
const maxSize = 64 << 20

func decompress(file string, data []byte) ([]byte, error) {
	if !strings.HasSuffix(file, resourcesv1alpha1.BrotliCompressionSuffix) {
		return data, nil
	}
	data, err := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(data)), maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing it with Brotli: %w", err)
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("it has more than %d MiB once it is decompressed", maxSize>>20)
	}
	return data, nil
}

func (w *wanted) decode(data []byte, prepare func(*unstructured.Unstructured)) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 1024)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(obj.Object) == 0 {
			continue
		}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" || obj.GetName() == "" {
			return errors.New("each object needs apiVersion, kind and metadata.name")
		}
		mode := obj.GetAnnotations()[resourcesv1alpha1.Mode]
		prepare(obj)
		ref := reference(obj)
		ref.Labels, ref.Annotations = obj.GetLabels(), obj.GetAnnotations()
		if mode == resourcesv1alpha1.ModeIgnore {
			w.released = append(w.released, ref)
			continue
		}
		w.objects, w.references = append(w.objects, obj), append(w.references, ref)
	}
}

// prepare adds the labels and annotations of a ManagedResource to an object, and the namespace default if it needs one.
func (t *target) prepare(resource *resourcesv1alpha1.ManagedResource, obj *unstructured.Unstructured) {
	obj.SetNamespace(t.namespaceOf(obj.GroupVersionKind(), obj.GetNamespace()))
	obj.SetLabels(labels.Merge(labels.Merge(obj.GetLabels(), resource.Spec.InjectLabels),
		labels.Set{resourcesv1alpha1.ManagedBy: resourcesv1alpha1.GardenerManager}))
	if template, ok, _ := unstructured.NestedMap(obj.Object, "spec", "template"); ok && template["metadata"] != nil {
		inject(template, resource.Spec.InjectLabels)
		_ = unstructured.SetNestedMap(obj.Object, template, "spec", "template")
	}
	// A Shoot that is deleted removes claims without such labels, while Pods use them.
	if claims, ok, _ := unstructured.NestedSlice(obj.Object, "spec", "volumeClaimTemplates"); ok {
		for _, claim := range claims {
			if claim, ok := claim.(map[string]any); ok {
				inject(claim, resource.Spec.InjectLabels)
			}
		}
		_ = unstructured.SetNestedSlice(obj.Object, claims, "spec", "volumeClaimTemplates")
	}
	if !t.watched && obj.GetKind() == "APIService" && obj.GetName() == "v1beta1.metrics.k8s.io" {
		// The API server of a shoot serves these metrics itself: metrics-server is simulated.
		for _, field := range []string{"service", "caBundle", "insecureSkipTLSVerify"} {
			unstructured.RemoveNestedField(obj.Object, "spec", field)
		}
	}
	obj.SetAnnotations(labels.Merge(obj.GetAnnotations(), map[string]string{
		resourcesv1alpha1.OriginAnnotation:     resource.Namespace + "/" + resource.Name,
		"resources.gardener.cloud/description": "The resource manager keeps this object as it is: changes to it are undone.",
	}))
}

// inject adds labels to a template of an object.
func inject(template map[string]any, added labels.Set) {
	before, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	_ = unstructured.SetNestedStringMap(template, labels.Merge(before, added), "metadata", "labels")
}

// namespaceOf returns the namespace of an object that names this one: none if its kind has none. It stays as it is while the API
// server does not have the kind.
func (t *target) namespaceOf(gvk schema.GroupVersionKind, namespace string) string {
	mapping, err := t.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case err != nil:
		return namespace
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		return ""
	}
	return cmp.Or(namespace, metav1.NamespaceDefault)
}

// applied returns the references in the status. Those of a kind that the API server did not have then get their namespace.
func (t *target) applied(resource *resourcesv1alpha1.ManagedResource) []resourcesv1alpha1.ObjectReference {
	refs := slices.Clone(resource.Status.Resources)
	for i := range refs {
		refs[i].Namespace = t.namespaceOf(refs[i].GroupVersionKind(), refs[i].Namespace)
	}
	return refs
}

// rank returns the position of an object in the order of applying: objects that others need come first.
func rank(obj *unstructured.Unstructured) int {
	order := []string{"Namespace", "CustomResourceDefinition", "PriorityClass", "ServiceAccount", "Secret", "ConfigMap", "ClusterRole",
		"ClusterRoleBinding", "Role", "RoleBinding", "Service"}
	if i := slices.Index(order, obj.GetKind()); i >= 0 {
		return i
	}
	return len(order)
}

func (t *target) applyObject(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, obj *unstructured.Unstructured) error {
	if ignored, _ := strconv.ParseBool(obj.GetAnnotations()[resourcesv1alpha1.Ignore]); ignored {
		err := t.reader.Get(ctx, client.ObjectKeyFromObject(obj), emptyLike(reference(obj)))
		if err == nil {
			return nil // it is only created, and not updated
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading %s of ManagedResource %s: %w", text(reference(obj)), client.ObjectKeyFromObject(resource), err)
		}
	}
	err := t.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.ForceOwnership,
		client.FieldOwner("gardener-resource-manager"))
	if err != nil {
		return fmt.Errorf("applying %s of ManagedResource %s: %w", text(reference(obj)), client.ObjectKeyFromObject(resource), err)
	}
	return nil
}

// clean deletes objects, and returns those that still exist. It omits objects that are to be kept or were released.
func (t *target) clean(ctx context.Context, refs, released []resourcesv1alpha1.ObjectReference) (left []string, err error) {
	for _, ref := range refs {
		if slices.ContainsFunc(released, func(other resourcesv1alpha1.ObjectReference) bool { return same(ref, other) }) {
			continue
		}
		obj := emptyLike(ref)
		err := t.reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, obj)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", text(ref), err)
		}
		if keeps(obj) {
			continue
		}
		left = append(left, text(ref))
		if obj.GetDeletionTimestamp() != nil {
			continue
		}
		unchanged := client.Preconditions{UID: ptr.To(obj.GetUID())}
		if err := t.Delete(ctx, obj, unchanged,
			client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("deleting %s: %w", text(ref), err)
		}
		if err := t.reader.Get(ctx, client.ObjectKeyFromObject(obj), obj); apierrors.IsNotFound(err) {
			left = left[:len(left)-1]
		}
	}
	return left, nil
}

func keeps(obj client.Object) bool {
	keep, _ := strconv.ParseBool(obj.GetAnnotations()[resourcesv1alpha1.KeepObject])
	return keep || obj.GetAnnotations()[resourcesv1alpha1.Mode] == resourcesv1alpha1.ModeIgnore
}

func emptyLike(ref resourcesv1alpha1.ObjectReference) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind())
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	return obj
}

func reference(obj *unstructured.Unstructured) resourcesv1alpha1.ObjectReference {
	return resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{
		APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(),
	}}
}

// same reports whether two references are to the same object, in whichever version of its API.
func same(a, b resourcesv1alpha1.ObjectReference) bool { return text(a) == text(b) }

func text(ref resourcesv1alpha1.ObjectReference) string {
	name := ref.Name
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}
	kind := ref.Kind
	if group := ref.GroupVersionKind().Group; group != "" {
		kind += "." + group
	}
	return kind + " " + name
}
