package managedseed

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	seedauthorizer "github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/restriction"
)

const (
	parentUser  = "gardener.cloud:system:seed:parent"
	parentGroup = "gardener.cloud:system:seeds"
)

// rules fails the test for each request that the SeedAuthorizer or SeedRestriction would refuse to the parent's
// gardenlet.
type rules struct{ *world }

// scoped returns a client for the garden that checks each request against the rules for the parent's gardenlet.
func (w *world) scoped() client.Client {
	r := rules{w}
	return interceptor.NewClient(w.garden, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			switch obj.(type) {
			case *seedmanagementv1alpha1.ManagedSeed, *corev1beta1.Shoot: // of other seeds, the gardenlet finds none
			default:
				r.authorize("get", obj, key, "")
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			r.authorize("create", obj, client.ObjectKey{Namespace: obj.GetNamespace()}, "")
			r.admit(admissionv1.Create, obj, nil)
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			r.authorize("update", obj, client.ObjectKeyFromObject(obj), "")
			r.admit(admissionv1.Update, obj, r.stored(obj))
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			r.authorize("patch", obj, client.ObjectKeyFromObject(obj), "")
			r.admit(admissionv1.Update, obj, r.stored(obj))
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			r.authorize("delete", obj, client.ObjectKeyFromObject(obj), "")
			if stored := r.stored(obj); stored != nil {
				r.admit(admissionv1.Delete, nil, stored)
			}
			return c.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption) error {
			r.authorize("patch", obj, client.ObjectKeyFromObject(obj), sub)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, obj, request client.Object,
			_ ...client.SubResourceCreateOption) error {
			// The gardenlet may request a token of a bootstrap account if it may read the account.
			r.authorize("get", obj, client.ObjectKeyFromObject(obj), "")
			request.(*authenticationv1.TokenRequest).Status.Token = "of-the-account"
			return nil
		},
	})
}

func (r rules) resource(obj runtime.Object) (schema.GroupVersionKind, schema.GroupVersionResource) {
	r.Helper()
	gvk, err := r.garden.GroupVersionKindFor(obj)
	if err != nil {
		r.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return gvk, resource
}

func (r rules) attributes(verb string, resource schema.GroupResource, key client.ObjectKey, sub string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: parentUser, Groups: []string{parentGroup}}, Verb: verb, ResourceRequest: true,
		APIGroup: resource.Group, APIVersion: "v1", Resource: resource.Resource, Subresource: sub, Namespace: key.Namespace, Name: key.Name,
	}
}

func (r rules) authorize(verb string, obj client.Object, key client.ObjectKey, sub string) {
	r.Helper()
	_, resource := r.resource(obj)
	decision, reason, err := r.authorizer().Authorize(r.Context(), r.attributes(verb, resource.GroupResource(), key, sub))
	if err != nil || decision != authorizer.DecisionAllow {
		r.Errorf("%s %s %s/%s is not authorized: %s %v", verb, resource.Resource, key, sub, reason, err)
	}
}

// authorizer returns a SeedAuthorizer that knows the current objects of the garden.
func (r rules) authorizer() *seedauthorizer.Authorizer {
	r.Helper()
	g := graph.New()
	for _, list := range []client.ObjectList{&corev1beta1.SeedList{}, &corev1beta1.ShootList{}, &seedmanagementv1alpha1.ManagedSeedList{}} {
		if err := r.garden.List(r.Context(), list); err != nil {
			r.Fatal(err)
		}
		_ = meta.EachListItem(list, func(obj runtime.Object) error {
			if owner, edges, ok := graph.EdgesOf(obj, r); ok {
				g.Set(owner, edges)
			}
			return nil
		})
	}
	return seedauthorizer.New(g, seedauthorizer.ReadsSeed)
}

func (r rules) Seed(name string) *corev1beta1.Seed {
	seed := &corev1beta1.Seed{}
	if r.garden.Get(r.Context(), client.ObjectKey{Name: name}, seed) != nil {
		return nil
	}
	return seed
}

func (r rules) Now() time.Time { return r.clock.Now() }

func (r rules) admit(operation admissionv1.Operation, obj, old client.Object) {
	r.Helper()
	one := obj
	if obj == nil {
		one = old
	}
	gvk, resource := r.resource(one)
	request := &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind(gvk), Resource: metav1.GroupVersionResource(resource), Operation: operation,
		UserInfo:  authenticationv1.UserInfo{Username: parentUser, Groups: []string{parentGroup}},
		Namespace: one.GetNamespace(), Name: one.GetName(),
	}
	for field, obj := range map[*runtime.RawExtension]client.Object{&request.Object: obj, &request.OldObject: old} {
		if obj == nil {
			continue
		}
		text, err := json.Marshal(obj)
		if err != nil {
			r.Fatal(err)
		}
		field.Raw = text
	}
	response := restriction.New(r, r, r.clock).Handle(r.Context(), request)
	if !response.Allowed && response.Result.Reason != metav1.StatusReasonAlreadyExists {
		r.Errorf("%s %s %s is not admitted: %s", operation, resource.Resource, client.ObjectKeyFromObject(one), response.Result.Message)
	}
}

func (r rules) stored(obj client.Object) client.Object {
	stored := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if r.garden.Get(r.Context(), client.ObjectKeyFromObject(obj), stored) != nil {
		return nil
	}
	return stored
}

// Get and List read objects for the SeedRestriction.
func (r rules) Get(ctx context.Context, _ schema.GroupVersionResource, namespace, name string, obj runtime.Object) error {
	return r.garden.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj.(client.Object))
}

func (r rules) List(ctx context.Context, _ schema.GroupVersionResource, namespace string, list runtime.Object) error {
	return r.garden.List(ctx, list.(client.ObjectList), client.InNamespace(namespace))
}

// OtherSeed returns false: the objects of the tests belong only to the parent and its ManagedSeed.
func (r rules) OtherSeed(context.Context, authenticationv1.UserInfo, schema.GroupResource, string, string) (bool, error) {
	return false, nil
}

// MayRead and MayDelete ask the SeedAuthorizer for the SeedRestriction.
func (r rules) MayRead(ctx context.Context, _ authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) bool {
	decision, _, err := r.authorizer().Authorize(ctx, r.attributes("get", resource, client.ObjectKey{Namespace: namespace, Name: name}, ""))
	return err == nil && decision == authorizer.DecisionAllow
}

func (r rules) MayDelete(ctx context.Context, _ authenticationv1.UserInfo, resource schema.GroupResource, namespace,
	name string) (bool, string, error) {
	decision, reason, err := r.authorizer().Authorize(
		ctx, r.attributes("delete", resource, client.ObjectKey{Namespace: namespace, Name: name}, ""))
	return decision == authorizer.DecisionAllow, reason, err
}
