package authorizer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const (
	// project is the namespace of the Shoots of seed.yaml.
	project = "garden-paper"
	missing = "missing"
)

// seeds are those of the landscape, those of seed.yaml, and one that does not exist.
var seeds = []string{"local", "local-2", "west", "east", "child", missing}

// world is a landscape in which nothing changes.
type world struct {
	config  *rest.Config // of the administrator
	objects dynamic.Interface
	webhook *http.Client
	url     string
	// names has the objects of each resource, and those to which objects refer.
	names map[schema.GroupResource][]key
}

type key struct{ namespace, name string }

// newWorld starts a landscape, has its controllers create Shoots and a Bastion, starts it again without them, and creates what
// seed.yaml has: objects that no controller would leave as they are.
func newWorld(t *testing.T) *world {
	t.Helper()
	made, err := harness.StartLandscape(t.Context(), "--seeds=2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Remove)
	for _, command := range [][]string{
		{"shoot", "create", "one", "--seed=local", "--workers=1", "--wait"},
		{"shoot", "create", "two", "--seed=local-2", "--workers=0", "--wait"},
		{"shoot", "migrate", "two", "--seed=local", "--wait"},
		{"ssh", "dev/one", "--keep-bastion", "--print"},
	} {
		if _, err := made.Run(t.Context(), command...); err != nil {
			t.Fatal(err)
		}
	}
	made.Process.End()
	landscape, err := harness.NewLandscape("--seeds=2", "--controllers=admission-controller", "--disable-admission-plugins="+strings.Join([]string{
		"ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ResourceReferenceManager", "ShootValidator", "ManagedSeed"}, ","))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(landscape.Remove)
	if err := os.Remove(landscape.Dir); err != nil {
		t.Fatal(err)
	}
	landscape.Dir = made.Dir
	if err := landscape.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &world{names: map[schema.GroupResource][]key{}}
	if w.config, err = landscape.Config(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.objects, err = dynamic.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	w.useWebhook(t, filepath.Join(landscape.Dir, "admission", "authorization.kubeconfig"))
	w.create(t, "v1", "namespaces", object("v1", "Namespace", "", project, map[string]any{"project.gardener.cloud/name": "paper"}))
	w.create(t, "core.gardener.cloud/v1beta1", "projects", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": map[string]any{"name": "paper"},
		"spec": map[string]any{"namespace": project}}})
	for _, s := range []struct{ name, other, child string }{{"west", "east", "child"}, {"east", "west", ""}, {"child", "east", ""}} {
		w.createSeed(t, s.name, s.other, s.child)
	}
	w.list(t)
	return w
}

// useWebhook makes requests with the kubeconfig of the garden's API server.
func (w *world) useWebhook(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w.url = config.Host
	if w.webhook, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
}

// createSeed creates the objects of seed.yaml, and a CertificateSigningRequest.
func (w *world) createSeed(t *testing.T, name, other, child string) {
	t.Helper()
	data, err := os.ReadFile("testdata/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	text := strings.NewReplacer("SEED", name, "OTHER", other, "CHILD", child).Replace(string(data))
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, fields := range all {
		obj := &unstructured.Unstructured{Object: fields}
		if obj.GetName() == "" { // of CHILD
			continue
		}
		kind := obj.GroupVersionKind()
		for _, r := range resources {
			if r.group == kind.Group && r.kind == kind.Kind {
				w.create(t, obj.GetAPIVersion(), r.name, obj)
			}
		}
	}
	w.create(t, "certificates.k8s.io/v1", "certificatesigningrequests", signingRequest(t, name))
}

// create creates an object, with its status.
func (w *world) create(t *testing.T, apiVersion, resource string, obj *unstructured.Unstructured) {
	t.Helper()
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		t.Fatal(err)
	}
	client := w.objects.Resource(version.WithResource(resource)).Namespace(obj.GetNamespace())
	created, err := client.Create(t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating %s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
	if status := obj.Object["status"]; status != nil {
		created.Object["status"] = status
		if _, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			t.Fatalf("updating the status of %s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
}

func object(apiVersion, kind, namespace, name string, labels map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name, "labels": labels}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
}

// signingRequest is one for the client certificate of a seed's gardenlet.
func signingRequest(t *testing.T, seed string) *unstructured.Unstructured {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{gardenlets}, CommonName: "gardener.cloud:system:seed:" + seed}}, private)
	if err != nil {
		t.Fatal(err)
	}
	obj := object("certificates.k8s.io/v1", "CertificateSigningRequest", "", "gardenlet-"+seed, nil)
	obj.Object["spec"] = map[string]any{
		"request":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
		"signerName": certificatesv1.KubeAPIServerClientSignerName,
		"usages":     []any{"digital signature", "key encipherment", "client auth"},
	}
	return obj
}

// named are objects that rules name, and that may not exist.
var named = map[string][]key{
	"leases":          {{"garden", "gardenlet-leader-election"}},
	"managedseeds":    {{"garden", missing}, {"garden", "west"}},
	"seeds":           {{"", missing}},
	"serviceaccounts": {{"garden", "gardenlet-bootstrap-west"}, {"garden", "gardenlet-bootstrap-" + missing}},
	"secrets":         {{"kube-system", "bootstrap-token-" + tokenID("west")}, {"kube-system", "bootstrap-token-" + tokenID(missing)}},
}

// list fills names with the objects that there are.
func (w *world) list(t *testing.T) {
	t.Helper()
	for _, r := range resources {
		gvr := schema.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.name}
		list, err := w.objects.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			t.Fatalf("listing %s: %v", r.name, err)
		}
		for _, item := range list.Items {
			w.names[gvr.GroupResource()] = append(w.names[gvr.GroupResource()], key{item.GetNamespace(), item.GetName()})
		}
		w.names[gvr.GroupResource()] = append(w.names[gvr.GroupResource()], named[r.name]...)
	}
}

// authorize asks gardenlite's SeedAuthorizer, like the garden's API server.
func (w *world) authorize(ctx context.Context, r *authorizer.AttributesRecord) (bool, error) {
	body, err := json.Marshal(reviewOf(r))
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := w.webhook.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(response.Body).Decode(&review); err != nil || response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: %s: %v", body, response.Status, err)
	}
	return review.Status.Allowed, nil
}

// reviewOf is the inverse of what a webhook reads from a review.
func reviewOf(r *authorizer.AttributesRecord) *authorizationv1.SubjectAccessReview {
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{User: r.User.GetName(), Groups: r.User.GetGroups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.APIGroup, Version: r.APIVersion,
				Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}},
	}
	attributes := review.Spec.ResourceAttributes
	for _, one := range r.FieldSelectorRequirements {
		if attributes.FieldSelector == nil {
			attributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{}
		}
		operator := metav1.FieldSelectorOpIn
		if one.Operator == notEquals {
			operator = metav1.FieldSelectorOpNotIn
		}
		attributes.FieldSelector.Requirements = append(attributes.FieldSelector.Requirements,
			metav1.FieldSelectorRequirement{Key: one.Field, Operator: operator, Values: []string{one.Value}})
	}
	for _, one := range r.LabelSelectorRequirements {
		if attributes.LabelSelector == nil {
			attributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{}
		}
		attributes.LabelSelector.Requirements = append(attributes.LabelSelector.Requirements,
			metav1.LabelSelectorRequirement{Key: one.Key(), Operator: labelOperators[one.Operator()], Values: one.ValuesUnsorted()})
	}
	return review
}
