package admission

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func TestValidateFinalizerRemoval(t *testing.T) {
	p := finalizerRemovalPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("shoots"): {&gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
			Spec: gardencore.ShootSpec{SecretBindingName: new("sb"), CredentialsBindingName: new("cb")}}},
	}}})
	var (
		secretBinding      = func(m metav1.ObjectMeta) runtime.Object { return &gardencore.SecretBinding{ObjectMeta: m} }
		credentialsBinding = func(m metav1.ObjectMeta) runtime.Object { return &security.CredentialsBinding{ObjectMeta: m} }
		project            = func(m metav1.ObjectMeta) runtime.Object { return &gardencore.Project{ObjectMeta: m} }
		shoot              = func(id string, operation *gardencore.LastOperation) func(metav1.ObjectMeta) runtime.Object {
			return func(m metav1.ObjectMeta) runtime.Object {
				return &gardencore.Shoot{ObjectMeta: m, Status: gardencore.ShootStatus{TechnicalID: id, LastOperation: operation}}
			}
		}
		deletion = func(state gardencore.LastOperationState, progress int32) *gardencore.LastOperation {
			return &gardencore.LastOperation{Type: gardencore.LastOperationTypeDelete, State: state, Progress: progress}
		}
	)
	for name, test := range map[string]struct {
		kind                schema.GroupKind
		object              func(metav1.ObjectMeta) runtime.Object
		namespace, name     string
		finalizers, removed []string
		forbidden           bool
	}{
		"used SecretBinding":          {gardencore.Kind("SecretBinding"), secretBinding, "ns", "sb", nil, []string{"gardener"}, true},
		"used CredentialsBinding":     {security.Kind("CredentialsBinding"), credentialsBinding, "ns", "cb", nil, []string{"gardener"}, true},
		"SecretBinding of other name": {gardencore.Kind("SecretBinding"), secretBinding, "ns", "cb", nil, []string{"gardener"}, false},
		"binding of other namespace": {security.Kind("CredentialsBinding"), credentialsBinding, "other", "cb", nil,
			[]string{"gardener"}, false},
		"other finalizer": {gardencore.Kind("SecretBinding"), secretBinding, "ns", "sb", []string{"gardener"},
			[]string{"other"}, false},
		"other kind": {gardencore.Kind("Project"), project, "", "p", nil, []string{"gardener"}, false},
		"Shoot that lives": {gardencore.Kind("Shoot"), shoot("id", &gardencore.LastOperation{Type: gardencore.
			LastOperationTypeReconcile, State: gardencore.LastOperationStateSucceeded, Progress: 100}), "ns", "s", nil, []string{"gardener"}, true},
		"Shoot that is nearly gone": {gardencore.Kind("Shoot"), shoot("id", deletion(gardencore.LastOperationStateSucceeded, 99)),
			"ns", "s", nil, []string{"gardener"}, true},
		"Shoot whose deletion failed": {gardencore.Kind("Shoot"), shoot("id", deletion(gardencore.LastOperationStateFailed, 100)),
			"ns", "s", nil, []string{"gardener"}, true},
		"Shoot that is gone": {gardencore.Kind("Shoot"),
			shoot("id", deletion(gardencore.LastOperationStateSucceeded, 100)), "ns", "s", nil, []string{"gardener"}, false},
		"Shoot that never got an ID": {gardencore.Kind("Shoot"), shoot("", deletion(gardencore.LastOperationStateError, 1)),
			"ns", "s", nil, []string{"gardener"}, false},
		"Shoot that was not reconciled": {gardencore.Kind("Shoot"), shoot("id", nil), "ns", "s", nil, []string{"gardener"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: test.namespace, Name: test.name, Finalizers: test.finalizers}
			oldMeta := meta
			oldMeta.Finalizers = append([]string{"x"}, append(test.removed, test.finalizers...)...)
			err := p.(admission.ValidationInterface).Validate(context.Background(),
				admission.NewAttributesRecord(test.object(meta), test.object(oldMeta), test.kind.WithVersion("v1"), test.namespace,
					test.name, schema.GroupVersionResource{}, "", admission.Update, nil, false, nil), nil)
			if apierrors.IsForbidden(err) != test.forbidden || !test.forbidden && err != nil {
				t.Errorf("got %v, want forbidden: %v", err, test.forbidden)
			}
		})
	}
}
