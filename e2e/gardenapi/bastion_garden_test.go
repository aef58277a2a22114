package gardenapi

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// bastionClient returns a client for the Bastions of a namespace, as a user with all rights there.
func bastionClient(t *testing.T, user, namespace string) dynamic.ResourceInterface {
	t.Helper()
	c := rest.CopyConfig(config)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	client, err := dynamic.NewForConfig(c)
	must(t, err)
	return client.Resource(infoOf(t, "Bastion").gvr).Namespace(namespace)
}

func bastionOf(t *testing.T, obj *unstructured.Unstructured) *operationsv1alpha1.Bastion {
	t.Helper()
	b := &operationsv1alpha1.Bastion{}
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, b))
	return b
}

// prepareBastion makes alice create a Bastion, in which she sets every field that only the garden may set.
func prepareBastion(t *testing.T, suffix string) (alice, bob dynamic.ResourceInterface, bastion *operationsv1alpha1.Bastion) {
	t.Helper()
	namespace := prepareProject(t, suffix)
	kubectl(t, "", "apply", "-f", manifestOf(t, suffix, "CloudProfile", "Project", "Seed", "CredentialsBinding", "Shoot")).OK(t)
	alice, bob = bastionClient(t, "alice", namespace), bastionClient(t, "bob", namespace)
	for _, obj := range validObjects(t, suffix) {
		if obj.GetKind() != "Bastion" {
			continue
		}
		obj.SetAnnotations(map[string]string{"gardener.cloud/created-by": "bob", "gardener.cloud/operation": "keepalive"})
		must(t, unstructured.SetNestedField(obj.Object, "other", "spec", "seedName"))
		must(t, unstructured.SetNestedField(obj.Object, "other", "spec", "providerType"))
		must(t, unstructured.SetNestedField(obj.Object, "2099-01-01T00:00:00Z", "status", "expirationTimestamp"))
		made, err := alice.Create(t.Context(), obj, created)
		must(t, err)
		return alice, bob, bastionOf(t, made)
	}
	t.Fatal("there is no Bastion among the objects")
	return nil, nil, nil
}

// TestGardenBastionIsMade: the garden sets the fields that it determines, whatever the client has sent.
func TestGardenBastionIsMade(t *testing.T) {
	begin := time.Now().Truncate(time.Second) // the API knows whole seconds
	alice, _, b := prepareBastion(t, "bsm")
	if b.Annotations["gardener.cloud/created-by"] != "alice" || b.Annotations["gardener.cloud/operation"] != "" {
		t.Errorf("annotations %v", b.Annotations)
	}
	if ptr.Deref(b.Spec.SeedName, "") != "bsm" || ptr.Deref(b.Spec.ProviderType, "") != "local" {
		t.Errorf("spec %+v", b.Spec)
	}
	if owner := metav1.GetControllerOf(b); owner == nil || owner.Kind != "Shoot" || owner.Name != "bsm" ||
		owner.APIVersion != corev1beta1.SchemeGroupVersion.String() {
		t.Errorf("owner %+v", owner)
	}
	beat, end := b.Status.LastHeartbeatTimestamp, b.Status.ExpirationTimestamp
	if beat == nil || end == nil || end.Sub(beat.Time) != time.Hour || beat.Time.Before(begin) || beat.After(time.Now()) {
		t.Errorf("heartbeat %s, expires %s", beat, end)
	}
	second := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(`{"apiVersion":"operations.gardener.cloud/v1alpha1","kind":"Bastion",`+
		`"metadata":{"name":"applied","annotations":{"gardener.cloud/created-by":"bob"}}}`), second))
	must(t, unstructured.SetNestedMap(
		second.Object, map[string]any{"shootRef": map[string]any{"name": "bsm"}, "sshPublicKey": b.Spec.SSHPublicKey,
			"ingress": []any{map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/24"}}}}, "spec"))
	applied, err := alice.Apply(t.Context(), "applied", second, metav1.ApplyOptions{FieldManager: "test"})
	must(t, err)
	if by := applied.GetAnnotations()["gardener.cloud/created-by"]; by != "alice" {
		t.Errorf("what alice applied was made by %q", by)
	}
}

// TestGardenBastionRefused: keys that a bastion cannot use, and ranges that its firewall cannot, are refused with their field.
func TestGardenBastionRefused(t *testing.T) {
	alice, _, b := prepareBastion(t, "bsr")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	must(t, err)
	public, err := ssh.NewPublicKey(&short.PublicKey)
	must(t, err)
	key, ranges := strings.TrimSpace(b.Spec.SSHPublicKey), func(cidrs ...string) (all []any) {
		for _, cidr := range cidrs {
			all = append(all, map[string]any{"ipBlock": map[string]any{"cidr": cidr}})
		}
		return all
	}
	for name, test := range map[string]struct {
		field string
		value any
		says  string
	}{
		"two keys":       {"sshPublicKey", key + "\n" + key, "one public key"},
		"options":        {"sshPublicKey", `command="id" ` + key, "without options"},
		"short RSA":      {"sshPublicKey", string(ssh.MarshalAuthorizedKey(public)), "at least 2048 bits"},
		"long comment":   {"sshPublicKey", key + " " + strings.Repeat("c", 1025), "at most 1024 bytes"},
		"leading zero":   {"ingress", ranges("10.0.0.0/08"), "must be a range"},
		"too many rules": {"ingress", ranges(slices.Repeat([]string{"192.0.2.0/24"}, 257)...), "256"},
	} {
		spec := map[string]any{"shootRef": map[string]any{"name": "bsr"}, "sshPublicKey": key, "ingress": ranges("192.0.2.0/24")}
		spec[test.field] = test.value
		object := meta("operations.gardener.cloud/v1alpha1", "Bastion", b.Namespace, "refused", map[string]any{"spec": spec})
		_, err := alice.Create(t.Context(), &unstructured.Unstructured{Object: object}, created)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec."+test.field) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGardenBastionIngress: by whatever request, only the creator of a Bastion changes its ingress.
func TestGardenBastionIngress(t *testing.T) {
	alice, bob, b := prepareBastion(t, "bsi")
	const merge, replace = `{"spec":{"ingress":[{"ipBlock":{"cidr":"198.51.100.0/24"}}]}}`,
		`[{"op":"replace","path":"/spec/ingress/0/ipBlock/cidr","value":"203.0.113.0/24"}]`
	patch := func(kind types.PatchType, body string, options metav1.PatchOptions) func(context.Context, dynamic.ResourceInterface) error {
		return func(ctx context.Context, as dynamic.ResourceInterface) error {
			_, err := as.Patch(ctx, b.Name, kind, []byte(body), options)
			return err
		}
	}
	apply := `{"apiVersion":"operations.gardener.cloud/v1alpha1","kind":"Bastion","metadata":{"name":"bsi"},` +
		`"spec":{"ingress":[{"ipBlock":{"cidr":"192.0.2.0/25"}}]}}`
	for _, test := range []struct {
		name   string
		change func(context.Context, dynamic.ResourceInterface) error
	}{
		{"merge patch", patch(types.MergePatchType, merge, metav1.PatchOptions{})},
		{"JSON patch", patch(types.JSONPatchType, replace, metav1.PatchOptions{})},
		{"strategic merge patch", patch(types.StrategicMergePatchType, strings.ReplaceAll(merge, "/24", "/25"), metav1.PatchOptions{})},
		{"dry run", patch(types.MergePatchType, merge, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})},
		{"server-side apply", patch(types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "test", Force: ptr.To(true)})},
		{"creator as well", patch(types.MergePatchType, `{"metadata":{"annotations":{"gardener.cloud/created-by":"bob"}},`+
			`"spec":{"ingress":[{"ipBlock":{"cidr":"0.0.0.0/0"}}]}}`, metav1.PatchOptions{})},
		{"update", func(ctx context.Context, as dynamic.ResourceInterface) error {
			obj, err := as.Get(ctx, b.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if err := unstructured.SetNestedSlice(obj.Object, []any{map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/26"}}},
				"spec", "ingress"); err != nil {
				return err
			}
			_, err = as.Update(ctx, obj, metav1.UpdateOptions{})
			return err
		}},
	} {
		err := test.change(t.Context(), bob)
		if test.name == "creator as well" { // invalid for every user
			if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				t.Errorf("%s, bob: %v", test.name, err)
			}
			continue
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.ingress") {
			t.Errorf("%s, bob: %v", test.name, err)
		}
		if err := test.change(t.Context(), alice); err != nil {
			t.Errorf("%s, alice: %v", test.name, err)
		}
	}
}

// TestGardenBastionTimes: only the garden writes heartbeats, by whatever request.
func TestGardenBastionTimes(t *testing.T) {
	_, bob, b := prepareBastion(t, "bst")
	patch := func(body, subresource string) (*operationsv1alpha1.Bastion, error) {
		var subresources []string
		if subresource != "" {
			subresources = append(subresources, subresource)
		}
		obj, err := bob.Patch(t.Context(), b.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
		if err != nil {
			return nil, err
		}
		return bastionOf(t, obj), nil
	}
	times := `"lastHeartbeatTimestamp":"2026-01-01T00:00:00Z","expirationTimestamp":"2099-01-01T00:00:00Z"`
	for _, test := range []struct{ body, subresource string }{
		{`{"status":{` + times + `}}`, ""},
		{`{"status":{"ingress":{"ip":"127.0.0.9"},` + times + `}}`, "status"},
		{`{"status":{"lastHeartbeatTimestamp":null,"expirationTimestamp":null}}`, "status"},
		{`{"metadata":{"annotations":{"gardener.cloud/operation":"keepalive"}}}`, "status"},
	} {
		got, err := patch(test.body, test.subresource)
		must(t, err)
		if !got.Status.LastHeartbeatTimestamp.Equal(b.Status.LastHeartbeatTimestamp) ||
			!got.Status.ExpirationTimestamp.Equal(b.Status.ExpirationTimestamp) {
			t.Errorf("%s of %q: %+v", test.body, test.subresource, got.Status)
		}
		if isSet := got.Status.Ingress != nil && got.Status.Ingress.IP == "127.0.0.9"; isSet != (test.subresource != "") {
			t.Errorf("%s of %q: ingress %+v", test.body, test.subresource, got.Status.Ingress)
		}
	}
	for _, test := range []struct{ body, subresource, field string }{
		{`{"status":{"lastHeartbeatTimestamp":"2099-01-01T00:00:00Z"}}`, "status", "status.lastHeartbeatTimestamp"},
		{`{"metadata":{"annotations":{"gardener.cloud/created-by":"bob"}}}`, "status", "metadata.annotations"},
		{`{"metadata":{"annotations":{"gardener.cloud/created-by":"bob"}}}`, "", "metadata.annotations"},
		{`{"metadata":{"annotations":{"gardener.cloud/created-by":null}}}`, "", "metadata.annotations"},
		{`{"spec":{"sshPublicKey":"` + b.Spec.SSHPublicKey + ` other"}}`, "", "spec.sshPublicKey"},
		{`{"spec":{"shootRef":{"name":"other"}}}`, "", "spec.shootRef.name"},
	} {
		if _, err := patch(test.body, test.subresource); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field) {
			t.Errorf("%s of %q: %v", test.body, test.subresource, err)
		}
	}
	eventually(t, waitTimeout, func(context.Context) error { // the API knows whole seconds
		got, err := patch(`{"metadata":{"annotations":{"gardener.cloud/operation":"keepalive"}}}`, "")
		if err == nil && !got.Status.LastHeartbeatTimestamp.After(b.Status.LastHeartbeatTimestamp.Time) {
			return errors.New("it is the same second still")
		}
		if err == nil && (got.Annotations["gardener.cloud/operation"] != "" ||
			got.Status.ExpirationTimestamp.Sub(got.Status.LastHeartbeatTimestamp.Time) != time.Hour) {
			t.Errorf("kept alive: %v, %+v", got.Annotations, got.Status)
		}
		return err
	})
}

// TestGardenBastionShoot: a Bastion leads to a Shoot of its own namespace that has a seed, is not being deleted, and
// has nodes with SSH access.
func TestGardenBastionShoot(t *testing.T) {
	_, _, b := prepareBastion(t, "bss")
	elsewhere := prepareProject(t, "bse")
	shoots := dyn.Resource(infoOf(t, "Shoot").gvr)
	sample, err := shoots.Namespace(b.Namespace).Get(t.Context(), "bss", metav1.GetOptions{})
	must(t, err)
	object := func(name string, change func(shoot map[string]any)) {
		t.Helper()
		shoot := meta("core.gardener.cloud/v1beta1", "Shoot", b.Namespace, name,
			map[string]any{"spec": runtime.DeepCopyJSONValue(sample.Object["spec"])})
		change(shoot)
		_, err := shoots.Namespace(b.Namespace).Create(t.Context(), &unstructured.Unstructured{Object: shoot}, created)
		must(t, err)
	}
	set := func(value any, path ...string) func(map[string]any) {
		return func(shoot map[string]any) { must(t, unstructured.SetNestedField(shoot, value, path...)) }
	}
	object("homeless", func(shoot map[string]any) { unstructured.RemoveNestedField(shoot, "spec", "seedName") })
	object("closed", set(false, "spec", "provider", "workersSettings", "sshAccess", "enabled"))
	object("going", set([]any{"example.com/hold"}, "metadata", "finalizers"))
	_, err = shoots.Namespace(b.Namespace).Patch(t.Context(), "going", types.MergePatchType, confirmed, metav1.PatchOptions{})
	must(t, err)
	must(t, shoots.Namespace(b.Namespace).Delete(t.Context(), "going", metav1.DeleteOptions{}))
	t.Cleanup(func() {
		_, err := shoots.Namespace(b.Namespace).Patch(context.Background(), "going", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	for _, test := range []struct{ what, namespace, shoot, says string }{
		{"no seed", b.Namespace, "homeless", "has no seed"},
		{"no SSH", b.Namespace, "closed", "SSH"},
		{"being deleted", b.Namespace, "going", "is being deleted"},
		{"unknown", b.Namespace, "unknown", "is not a Shoot"},
		{"of another namespace", elsewhere, "bss", "is not a Shoot"},
		{"fit", b.Namespace, "bss", ""},
	} {
		made := meta("operations.gardener.cloud/v1alpha1", "Bastion", test.namespace, "", map[string]any{"spec": map[string]any{
			"shootRef": map[string]any{"name": test.shoot}, "sshPublicKey": b.Spec.SSHPublicKey,
			// Ranges of IPv6 and IPv4: the garden does not restrict them.
			"ingress": []any{map[string]any{"ipBlock": map[string]any{"cidr": "2001:db8::/64"}},
				map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.7/32"}}}}})
		metadata := made["metadata"].(map[string]any)
		delete(metadata, "name")
		metadata["generateName"] = "cli-"
		eventually(t, waitTimeout, func(ctx context.Context) error { // admission may not have the changed Shoot yet
			got, err := bastionClient(t, "alice", test.namespace).Create(
				ctx, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(made)}, created)
			if test.says == "" {
				if err == nil && !strings.HasPrefix(got.GetName(), "cli-") {
					t.Errorf("it is called %s", got.GetName())
				}
				return err
			}
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.shootRef.name") || !strings.Contains(err.Error(), test.says) {
				return errors.New(test.what + ": " + errorText(err))
			}
			return nil
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return "it is made"
	}
	return err.Error()
}
