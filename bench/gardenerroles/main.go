// Command gardenerroles prints the roles and bindings of Gardener's own garden, with which a test compares those of
// this one. It is in this module because the module of the product does not have Gardener.
//
//	go run ./gardenerroles > ../internal/garden/defaultobjects/testdata/gardener-roles.yaml
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"reflect"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/garden/system/virtual"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	const namespace = "garden"
	runtime := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	if err := virtual.New(runtime, namespace, virtual.Values{SeedAuthorizerEnabled: true}).Deploy(ctx); err != nil {
		return err
	}
	objects, err := managedresources.GetObjects(ctx, runtime, namespace, virtual.ManagedResourceName)
	if err != nil {
		return err
	}
	kind := func(o client.Object) string { return reflect.TypeOf(o).Elem().Name() }
	objects = slices.DeleteFunc(objects, func(o client.Object) bool { return !strings.Contains(kind(o), "Role") })
	slices.SortFunc(objects, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(a.GetName(), b.GetName()))
	})
	for _, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		fmt.Printf("---\n%s", data)
	}
	return nil
}
