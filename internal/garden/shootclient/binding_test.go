package shootclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestBinding checks which credentials Create makes in a project, and what it says if it must not.
func TestBinding(t *testing.T) {
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: sampleBinding}}
	for name, test := range map[string]struct {
		objects   []client.Object
		workers   int32
		change    func(*corev1beta1.Shoot)
		forbidden string // the kind that must not be created
		makes     bool
		says      string
	}{
		"none":         {workers: 1, makes: true},
		"there is one": {workers: 1, objects: []client.Object{binding}},
		"no workers":   {},
		"another": {workers: 1, change: func(s *corev1beta1.Shoot) {
			s.Spec.CredentialsBindingName = ptr.To("mine")
		}},
		"no right to one": {workers: 1, forbidden: "*v1alpha1.CredentialsBinding",
			says: "and its CredentialsBinding cannot be created: no"},
		"no right to Secret": {workers: 1, forbidden: "*v1.Secret",
			says: "garden-dev/sample, which does not exist, and its Secret cannot be created: no"},
	} {
		t.Run(name, func(t *testing.T) {
			c := garden(t, nil, test.objects...)
			c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if typeName(obj) == test.forbidden {
						return errors.New("no")
					}
					return c.Create(ctx, obj, opts...)
				},
			})
			_, _, err := c.Create(t.Context(), Spec{Key: key, Workers: &test.workers, Change: test.change})
			if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Fatal(err)
			}
			if test.says != "" {
				return
			}
			secret, found := &corev1.Secret{}, &securityv1alpha1.CredentialsBinding{}
			at := client.ObjectKeyFromObject(binding)
			if err := c.Get(t.Context(), at, secret); (err == nil) != test.makes {
				t.Errorf("the Secret: %v", err)
			}
			err = c.Get(t.Context(), at, found)
			if test.makes && (err != nil || found.CredentialsRef.Name != secret.Name || found.Provider.Type != "local" ||
				secret.Labels["provider.shoot.gardener.cloud/local"] != "true") || !test.makes && test.objects == nil && err == nil {
				t.Errorf("%v: %+v, %+v", err, found, secret)
			}
		})
	}
}

func typeName(obj client.Object) string { return fmt.Sprintf("%T", obj) }

// TestCreateInNewProject creates a Shoot while the project gets its namespace.
func TestCreateInNewProject(t *testing.T) {
	c := garden(t, nil, &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	reads := 0
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, at client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if project, ok := obj.(*corev1beta1.Project); ok && reads < 2 {
				if reads++; reads == 2 {
					if err := c.Get(ctx, at, project); err != nil {
						return err
					}
					project.Spec.Namespace = ptr.To("garden-team")
					namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-team"}}
					if err := errors.Join(c.Update(ctx, project), c.Create(ctx, namespace)); err != nil {
						return err
					}
				}
			}
			return c.Get(ctx, at, obj, opts...)
		},
	})
	shoot, _, err := c.Create(t.Context(), Spec{Key: Key{"team", "x"}})
	if err != nil || shoot.Namespace != "garden-team" {
		t.Errorf("%+v, %v", shoot, err)
	}
}
