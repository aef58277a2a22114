package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// managedSeed is a seed that the gardenlet of the seed local creates from a Shoot.
type managedSeed struct {
	name, method string
	objects      map[string]*unstructured.Unstructured // by kind
}

// newManagedSeed reads the manifests of a managed seed, which create creates. Its networks are below net, such as
// "10.2".
func newManagedSeed(t *testing.T, name, method, net string) *managedSeed {
	t.Helper()
	data, err := os.ReadFile("testdata/managedseed.yaml")
	must(t, err)
	text := strings.NewReplacer("NAME", name, "METHOD", method, "NET", net).Replace(string(data))
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	m := &managedSeed{name: name, method: method, objects: map[string]*unstructured.Unstructured{}}
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return m
		} else if err != nil {
			t.Fatal(err)
		}
		m.objects[obj.GetKind()] = obj
	}
}

func (m *managedSeed) create(t *testing.T, l *landscape, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		l.create(t, resourceOf(kind), m.objects[kind].Object)
	}
}

// tokenSecret returns the name that the garden requires of the Secret with the gardenlet's bootstrap token.
func (m *managedSeed) tokenSecret() string {
	sum := sha256.Sum256([]byte("garden--" + m.name))
	return "bootstrap-token-" + hex.EncodeToString(sum[:3])
}

func (m *managedSeed) account() string { return "gardenlet-bootstrap-" + m.name }

func (m *managedSeed) binding() string {
	return "gardener.cloud:system:seed-bootstrapper:garden:" + m.account()
}

// conditionIs returns an error unless a condition of an object has the status.
func (l *landscape) conditionIs(ctx context.Context, resource, name, kind, status string) error {
	obj, err := l.at(resource, "garden").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range conditionsOf(obj) {
		if c["type"] == kind && c["status"] == status {
			return nil
		}
	}
	return fmt.Errorf("%s %s is not %s=%s: %v", resource, name, kind, status, obj.Object["status"])
}

func (l *landscape) patch(t *testing.T, resource, name, patch string, subresources ...string) {
	t.Helper()
	namespace := "garden"
	if !accessResources[resource].Namespaced {
		namespace = ""
	}
	_, err := l.at(resource, namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	must(t, err)
}

// isManaged waits until a ManagedSeed is completely reconciled.
func (l *landscape) isManaged(t *testing.T, name string) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		return errors.Join(l.conditionIs(t.Context(), "managedseeds", name, "ShootReconciled", "True"),
			l.conditionIs(t.Context(), "managedseeds", name, "SeedRegistered", "True"))
	})
}

// runs waits until the gardenlet of a seed and its cluster run in the process, and its Seed is ready.
func (l *landscape) runs(t *testing.T, name string) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		ctx := t.Context()
		return errors.Join(l.seedIsReady(ctx, name, time.Time{}), l.isListed(t, name))
	})
}

// isListed returns an error for each component of a running seed that the status does not list as ready.
func (l *landscape) isListed(t *testing.T, name string) error {
	t.Helper()
	ready := map[string]string{}
	for _, c := range componentsOf(t, l.dir) {
		ready[c.Name] = c.State + " " + c.Message
	}
	var errs []error
	for _, component := range []string{"seed-" + name, "gardenlet " + name, "provider-local " + name, "resource-manager " + name} {
		if state := ready[component]; state != "Ready " {
			errs = append(errs, fmt.Errorf("the component %q is %q", component, state))
		}
	}
	return errors.Join(errs...)
}

func (l *landscape) config(t *testing.T) *rest.Config {
	t.Helper()
	return rest.CopyConfig(l.admin)
}
