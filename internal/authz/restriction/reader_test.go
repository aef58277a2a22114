package restriction

import (
	"context"
	"slices"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

func TestReader(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ctx, reader := context.Background(),
		NewReader(dynamicfake.NewSimpleDynamicClient(scheme, seed("a"), managedSeed("child", "on-a"), shootOn("garden-dev", "on-a", "a")))

	found := &seedmanagementv1alpha1.ManagedSeed{}
	if err := reader.Get(ctx, managedSeeds.resource, "garden", "child", found); err != nil {
		t.Fatal(err)
	}
	if refs, err := references(found); err != nil || len(refs) == 0 || refs[0].Name != "backup-child" || found.Spec.Shoot.Name != "on-a" {
		t.Errorf("read %v, %v from %+v", refs, err, found.Spec)
	}
	if err := reader.Get(ctx, seeds.resource, "", "b", &corev1beta1.Seed{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v for what is not there", err)
	}
	for namespace, want := range map[string]int{"": 1, "garden-dev": 1, "garden": 0} {
		list := &corev1beta1.ShootList{}
		if err := reader.List(ctx, shoots.resource, namespace, list); err != nil || len(list.Items) != want {
			t.Errorf("%d shoots in %q, want %d; %v", len(list.Items), namespace, want, err)
		}
	}
}

type recorder struct {
	*world
	read map[string]map[schema.GroupResource]bool
}

func (r recorder) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, obj runtime.Object) error {
	r.read["get"][resource.GroupResource()] = true
	return r.world.Get(ctx, resource, namespace, name, obj)
}

func (r recorder) List(ctx context.Context, resource schema.GroupVersionResource, namespace string, list runtime.Object) error {
	r.read["list"][resource.GroupResource()] = true
	return r.world.List(ctx, resource, namespace, list)
}

func TestReadRules(t *testing.T) {
	r := recorder{landscape(), map[string]map[schema.GroupResource]bool{"get": {}, "list": {}}}
	for _, attack := range attacks() {
		given := attack.begin()
		for _, s := range attack.steps {
			_, there := given.objects[s.resource.resource][s.deleted()]
			if s.create != nil || s.delete != "" && there {
				New(r, nil, nil).Handle(context.Background(), s.request(t, given))
			}
		}
	}
	New(r, nil, nil).Handle(context.Background(), creation(backupBuckets, gardenletA, bucket("a", from("garden", "new"))))
	if len(r.read["get"]) < 6 || len(r.read["list"]) != len(listed) {
		t.Fatalf("only %v is read", r.read)
	}
	for verb, resources := range r.read {
		for resource := range resources {
			covered := slices.ContainsFunc(ReadRules(), func(rule rbacv1.PolicyRule) bool {
				return rule.APIGroups[0] == resource.Group && rule.Resources[0] == resource.Resource && slices.Contains(rule.Verbs, verb)
			})
			if !covered {
				t.Errorf("%s %s is done, which the rules do not allow", verb, resource)
			}
		}
	}
}
