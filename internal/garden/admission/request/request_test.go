package request

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func attributes(op admission.Operation, name, subresource string, obj, old runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(obj, old, gardencore.Kind("Seed").WithVersion("v1beta1"), "", name,
		gardencore.Resource("seeds").WithVersion("v1beta1"), subresource, op, nil, false, &user.DefaultInfo{Name: "jane"})
}

func seed(name string) *gardencore.Seed {
	return &gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestObjects(t *testing.T) {
	for name, test := range map[string]struct {
		a        admission.Attributes
		obj, old string
		bad      bool
	}{
		"create":     {a: attributes(admission.Create, "a", "", seed("a"), nil), obj: "a"},
		"update":     {a: attributes(admission.Update, "a", "", seed("a"), seed("b")), obj: "a", old: "b"},
		"delete":     {a: attributes(admission.Delete, "a", "", nil, seed("b")), obj: "b", old: "b"},
		"wrong kind": {a: attributes(admission.Create, "a", "", &gardencore.Shoot{}, nil), bad: true},
		"no old":     {a: attributes(admission.Update, "a", "", seed("a"), nil), bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			obj, old, err := Objects[gardencore.Seed](test.a)
			if test.bad {
				if !apierrors.IsBadRequest(err) {
					t.Errorf("got %v, want BadRequest", err)
				}
				return
			}
			if err != nil || obj.Name != test.obj || old.Name != test.old {
				t.Errorf("got %v, %v, %v", obj, old, err)
			}
		})
	}
}

func TestIsAbout(t *testing.T) {
	if a := attributes(admission.Create, "", "", nil, nil); !IsForKind(a, gardencore.Kind("Seed")) || IsForKind(a, gardencore.Kind("Shoot")) {
		t.Error("the kind must be that of the request")
	}
	if IsForKind(attributes(admission.Create, "", "status", nil, nil), gardencore.Kind("Seed")) {
		t.Error("subresources do not count")
	}
	for _, subresource := range []string{"status", AnySubresource} {
		if !IsForKind(attributes(admission.Create, "", "status", nil, nil), gardencore.Kind("Seed"), "scale", subresource) {
			t.Error("the given subresources count")
		}
	}
}

func TestIsDeleting(t *testing.T) {
	gone := seed("a")
	gone.DeletionTimestamp = &metav1.Time{}
	if !IsDeleting(attributes(admission.Update, "", "", gone, gone), gone) ||
		IsDeleting(attributes(admission.Update, "", "", nil, nil), seed("a")) {
		t.Error("the deletion timestamp must decide")
	}
	if IsDeleting(attributes(admission.Create, "", "", gone, nil), gone) {
		t.Error("only updates count")
	}
}

func TestMayGet(t *testing.T) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	authz := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "jane" && a.GetVerb() == "get" && a.GetResource() == "secrets" && a.GetNamespace() == "ns" &&
			a.GetName() == "yes" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	for name, want := range map[string]bool{"yes": true, "no": false} {
		got, err := MayGet(context.Background(), authz, attributes(admission.Create, "", "", nil, nil), resource, "ns", name)
		if err != nil || got != want {
			t.Errorf("got %v, %v for %q", got, err, name)
		}
	}
}
