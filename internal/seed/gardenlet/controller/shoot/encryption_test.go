package shoot

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// encryptedObjects returns a client for the metadata of a Secret and a ConfigMap in a shoot.
func encryptedObjects(t *testing.T) *metadatafake.FakeMetadataClient {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, kind := range []string{"Secret", "ConfigMap"} {
		objects = append(objects, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}})
	}
	return metadatafake.NewSimpleMetadataClient(scheme, objects...)
}

// rewritten returns the resources whose objects were written since the last call.
func (w *world) rewritten() (all []string) {
	for _, action := range w.objects.Actions() {
		if patch, is := action.(clienttesting.PatchAction); is {
			all = append(all, patch.GetResource().Resource+" "+string(patch.GetPatch()))
		}
	}
	w.objects.ClearActions()
	slices.Sort(all)
	return all
}

// encryption summarizes an EncryptionConfiguration: for each group of resources, their names and the providers in
// order, with the names of their keys.
func encryption(t *testing.T, data []byte) (all []string) {
	t.Helper()
	config := apiserverv1.EncryptionConfiguration{}
	if err := json.Unmarshal(data, &config); err != nil || config.Kind != "EncryptionConfiguration" {
		t.Fatalf("no encryption configuration: %v", err)
	}
	for _, group := range config.Resources {
		summary := strings.Join(group.Resources, "+")
		for _, provider := range group.Providers {
			switch {
			case provider.AESCBC != nil:
				summary += " cbc:" + provider.AESCBC.Keys[0].Name
			case provider.Secretbox != nil:
				summary += " box:" + provider.Secretbox.Keys[0].Name
			case provider.Identity != nil:
				summary += " plain"
			}
		}
		all = append(all, summary)
	}
	return all
}

// keyName returns the name of a key in a Secret of the seed.
func (w *world) keyName(secret string) string {
	w.Helper()
	return string(get(w, w.seed, id, secret, &corev1.Secret{}).Data["key"])
}

const encryptionSecret = "kube-apiserver-etcd-encryption-key"

// watchServer records each encryption configuration that the API server is given.
func (w *world) watchServer(given *[][]string) {
	w.before = func(cluster, _ string, obj client.Object) error {
		if secret, is := obj.(*corev1.Secret); is && cluster == "seed" && secret.Name == spec.SecretName {
			if summary := encryption(w.T, secret.Data[spec.KeyEncryption]); len(*given) == 0 || !slices.Equal((*given)[len(*given)-1], summary) {
				*given = append(*given, summary)
			}
		}
		return nil
	}
}

// TestEncryption checks that a Shoot is encrypted from the start. A new key is used only to decrypt at first. Then it
// encrypts new data, then all data, and only then is the old key removed.
func TestEncryption(t *testing.T) {
	w := newWorld(t, aShoot(func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.33.0" }), aSeed())
	var given [][]string
	w.watchServer(&given)
	at := w.settle().Status.Credentials.EncryptionAtRest
	first := w.keyName(encryptionSecret)
	if want := [][]string{{"secrets cbc:" + first + " plain"}}; !slices.EqualFunc(given, want, slices.Equal) || at.Provider.Type != "aescbc" {
		t.Errorf("it is encrypted as %v, want %v; the status tells of %+v", given, want, at)
	}
	if got := w.rewritten(); !slices.Equal(got, []string{"secrets {}"}) {
		t.Errorf("a Shoot that may have been there before has rewritten %v", got)
	}
	w.requestOperation("reconcile")
	if got := w.rewritten(); got != nil || len(given) != 1 {
		t.Errorf("nothing has changed, and %v were rewritten, the server got %v", got, given)
	}

	given = nil
	phase := w.requestOperation("rotate-etcd-encryption-key-start").Status.Credentials.Rotation.ETCDEncryptionKey.Phase
	second := w.keyName(encryptionSecret)
	want := [][]string{{"secrets cbc:" + first + " cbc:" + second + " plain"}, {"secrets cbc:" + second + " cbc:" + first + " plain"}}
	if !slices.EqualFunc(given, want, slices.Equal) || phase != "Prepared" || second == first || w.keyName(encryptionSecret+".old") != first {
		t.Errorf("%s, the server was told %v, want %v", phase, given, want)
	}
	if got := w.rewritten(); !slices.Equal(got, []string{"secrets {}"}) {
		t.Errorf("rewritten with the new key: %v", got)
	}
	given = nil
	phase = w.requestOperation("rotate-etcd-encryption-key-complete").Status.Credentials.Rotation.ETCDEncryptionKey.Phase
	if want := [][]string{{"secrets cbc:" + second + " plain"}}; !slices.EqualFunc(given, want, slices.Equal) ||
		phase != "Completed" || w.keyName(encryptionSecret+".old") != "" {
		t.Errorf("%s, the server was told %v, want %v", phase, given, want)
	}
}

// TestRewriteThatTimesOut checks that an object counts as rewritten only if the request succeeds: otherwise the old key
// would be removed, and the object lost.
func TestRewriteThatTimesOut(t *testing.T) {
	objects := encryptedObjects(t)
	objects.PrependReactor("patch", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, context.DeadlineExceeded
	})
	secrets := objects.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	if err := rewrite(t.Context(), secrets); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestEncryptedResources checks that resources which are to be encrypted, or no longer to be encrypted, are rewritten
// while they can be read both ways, and that another encryption provider gets another key.
func TestEncryptedResources(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	first := w.keyName(encryptionSecret)
	var given [][]string
	w.watchServer(&given)
	config := func(provider corev1beta1.EncryptionProviderType, resources ...string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{
				Resources: resources, Provider: corev1beta1.EncryptionProvider{Type: ptr.To(provider)}}}
		}
	}
	w.rewritten()
	both := []string{"configmaps {}", "secrets {}"}
	at := w.requestOperation("", config("aescbc", "configmaps.")).Status.Credentials.EncryptionAtRest
	if got := w.rewritten(); !slices.Equal(got, both) || !slices.Equal(at.Resources, []string{"configmaps"}) ||
		!slices.Equal(given[0], []string{"secrets+configmaps cbc:" + first + " plain"}) {
		t.Errorf("rewritten %v, told %v, %+v", got, given, at)
	}
	given = nil
	at = w.requestOperation("", config("aescbc")).Status.Credentials.EncryptionAtRest
	if got := w.rewritten(); !slices.Equal(got, both) || at.Resources != nil ||
		!slices.Equal(given[0], []string{"secrets cbc:" + first + " plain", "configmaps plain cbc:" + first}) {
		t.Errorf("rewritten %v, told %v, %+v", got, given, at)
	}
	given = nil
	s := w.requestOperation("", config("secretbox")).Status.Credentials
	second := w.keyName(encryptionSecret)
	if want := []string{"secrets box:" + second + " cbc:" + first + " plain"}; s.EncryptionAtRest.Provider.Type != "secretbox" ||
		s.Rotation.ETCDEncryptionKey.Phase != "Prepared" ||
		!slices.Equal(given[len(given)-1], want) {
		t.Errorf("%+v, told %v, want %v at last", s, given, want)
	}
	w.requestOperation("reconcile")
	if got := given[len(given)-1]; !slices.Equal(got, []string{"secrets box:" + second + " plain"}) ||
		w.keyName(encryptionSecret+".old") != "" {
		t.Errorf("told %v", got)
	}
}

// TestKeyIsKept checks that the old key is kept while some objects could not be rewritten, whatever is requested, and
// that there is no third key.
func TestKeyIsKept(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	first := w.keyName(encryptionSecret)
	w.objects.PrependReactor("patch", "secrets",
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no room") })
	w.change(func(s *corev1beta1.Shoot) {
		s.Generation++
		s.Annotations = map[string]string{"gardener.cloud/operation": "rotate-etcd-encryption-key"}
	})
	if err := w.attempt(); err == nil || !strings.Contains(err.Error(), "default/own: no room") {
		t.Fatalf("rotated: %v", err)
	}
	for _, phase := range []corev1beta1.CredentialsRotationPhase{"Completing", "Preparing"} { // which the API server does not allow
		w.clock.Step(time.Minute)
		w.change(func(s *corev1beta1.Shoot) {
			s.Generation++
			r := s.Status.Credentials.Rotation.ETCDEncryptionKey
			r.Phase, r.LastInitiationTime = phase, ptr.To(metav1.NewTime(w.clock.Now()))
		})
		if err := w.attempt(); err == nil {
			t.Fatal("it succeeds")
		}
		if w.keyName(encryptionSecret+".old") != first {
			t.Errorf("%s: the key is lost", phase)
		}
	}
	w.objects.ReactionChain = w.objects.ReactionChain[1:]
	before := maps.Clone(w.secrets())
	w.settle()
	if after := w.secrets(); after[encryptionSecret] != before[encryptionSecret] {
		t.Error("there was a third key")
	}
}

// TestNotServed checks that custom resources which are defined but not served yet are waited for, and undefined ones
// are not.
func TestNotServed(t *testing.T) {
	w := newWorld(t, aShoot(func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
			EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"widgets.example.com"}}}
	}), aSeed())
	definition := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
	if err := w.objects.Tracker().Add(definition); err != nil {
		t.Fatal(err)
	}
	if err := w.attempt(); err == nil || w.shoot().Status.Credentials != nil {
		t.Errorf("it does not wait: %v, %+v", err, w.shoot().Status.Credentials)
	}
	if got := w.rewritten(); got != nil {
		t.Errorf("rewritten %v", got)
	}
	if err := w.objects.Tracker().Delete(definitions, "", definition.Name); err != nil {
		t.Fatal(err)
	}
	if at := w.settle().Status.Credentials.EncryptionAtRest; !slices.Equal(at.Resources, []string{"widgets.example.com"}) {
		t.Errorf("%+v", at)
	}
}
