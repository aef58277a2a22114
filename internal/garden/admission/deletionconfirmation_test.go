package admission

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

const robotDeletionConfirmation = "system:serviceaccount:garden-dev:robot"

// object returns metadata with the given values of the confirmation annotation and of the one with the confirming user.
func object(namespace, name, confirmed, by string) metav1.ObjectMeta {
	obj := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"critical": "yes"}}
	if confirmed != "" {
		metav1.SetMetaDataAnnotation(&obj, v1beta1constants.ConfirmationDeletion, confirmed)
	}
	if by != "" {
		metav1.SetMetaDataAnnotation(&obj, v1beta1constants.DeletionConfirmedBy, by)
	}
	return obj
}

func TestValidateDeletionConfirmation(t *testing.T) {
	critical := metav1.LabelSelector{MatchLabels: map[string]string{"critical": "yes"}}
	two := []gardencore.DualApprovalForDeletion{{Resource: "shoots", Selector: critical}, {Resource: "projects"}}
	project := func(name, namespace string, rules ...gardencore.DualApprovalForDeletion) *gardencore.Project {
		return &gardencore.Project{ObjectMeta: object("", name, "true", "ann"),
			Spec: gardencore.ProjectSpec{Namespace: &namespace, DualApprovalForDeletion: rules}}
	}
	shoot := func(namespace, name, confirmed, by string) *gardencore.Shoot {
		return &gardencore.Shoot{ObjectMeta: object(namespace, name, confirmed, by)}
	}
	reader := plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("projects"): {
			project("one", "garden-one"), project("two", "garden-two", two...),
			project("people", "garden-people", gardencore.DualApprovalForDeletion{Resource: "shoots", IncludeServiceAccounts: ptr.To(false)}),
			project("other", "garden-other", append([]gardencore.DualApprovalForDeletion{
				{Resource: "shoots", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"critical": "no"}}}}, two...)...),
		},
		gardencore.Resource("shoots"): {
			shoot("garden-one", "confirmed", "true", "ann"), shoot("garden-one", "one", "1", ""), shoot("garden-one", "denied", "false", ""),
			shoot("garden-one", "nonsense", "yes", ""), shoot("garden-one", "plain", "", ""),
			shoot("garden-two", "confirmed", "true", "ann"), shoot("garden-people", "confirmed", "true", "ann"),
			shoot("garden-people", "by-robot", "true", robotDeletionConfirmation), shoot("garden-other", "confirmed", "true", "ann"),
			shoot("nowhere", "confirmed", "true", "ann"),
		},
		gardencore.Resource("shootstates"): {&gardencore.ShootState{ObjectMeta: object("garden-two", "confirmed", "true", "")},
			&gardencore.ShootState{ObjectMeta: object("garden-one", "plain", "", "")}},
	}}
	for name, tc := range map[string]struct {
		kind, namespace, name, user string
		want                        metav1.StatusReason
	}{
		"confirmed":                             {"Shoot", "garden-one", "confirmed", "ann", ""},
		"confirmed with another true":           {"Shoot", "garden-one", "one", "ann", ""},
		"not confirmed":                         {"Shoot", "garden-one", "plain", "ann", metav1.StatusReasonForbidden},
		"false":                                 {"Shoot", "garden-one", "denied", "ann", metav1.StatusReasonForbidden},
		"not a boolean":                         {"Shoot", "garden-one", "nonsense", "ann", metav1.StatusReasonForbidden},
		"gone":                                  {"Shoot", "garden-one", "gone", "ann", metav1.StatusReasonNotFound},
		"no project":                            {"Shoot", "nowhere", "confirmed", "ann", metav1.StatusReasonForbidden},
		"the one who confirmed":                 {"Shoot", "garden-two", "confirmed", "ann", metav1.StatusReasonForbidden},
		"another user":                          {"Shoot", "garden-two", "confirmed", "bob", ""},
		"people only":                           {"Shoot", "garden-people", "confirmed", "ann", metav1.StatusReasonForbidden},
		"people only, a service account":        {"Shoot", "garden-people", "by-robot", robotDeletionConfirmation, ""},
		"the first rule counts":                 {"Shoot", "garden-other", "confirmed", "ann", ""},
		"a project":                             {"Project", "", "one", "ann", ""},
		"a project, by the one who confirmed":   {"Project", "", "two", "ann", metav1.StatusReasonForbidden},
		"a state":                               {"ShootState", "garden-two", "confirmed", "ann", ""},
		"a state, not confirmed":                {"ShootState", "garden-one", "plain", "ann", metav1.StatusReasonForbidden},
		"a collection, another user":            {"Shoot", "garden-two", "", "bob", ""},
		"a collection, the one who confirmed":   {"Shoot", "garden-two", "", "ann", metav1.StatusReasonForbidden},
		"a collection, one of it not confirmed": {"Shoot", "garden-one", "", "ann", metav1.StatusReasonForbidden},
		"something else":                        {"Seed", "", "seed", "ann", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := deletionConfirmationPlugin.New(plugin.Dependencies{Reader: reader})
			a := admission.NewAttributesRecord(nil, nil, gardencore.Kind(tc.kind).WithVersion(""), tc.namespace, tc.name,
				gardencore.Resource("things").WithVersion(""), "", admission.Delete, nil, false, &user.DefaultInfo{Name: tc.user})
			if err := p.(admission.ValidationInterface).Validate(context.Background(), a, nil); apierrors.ReasonForError(err) != tc.want ||
				(err == nil) != (tc.want == "") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestConfirmedBy(t *testing.T) {
	for name, tc := range map[string]struct {
		old         *metav1.ObjectMeta // nil for a create request
		confirmed   string
		subresource string
		want        *string
	}{
		"created confirmed":     {nil, "true", "", ptr.To("bob")},
		"created":               {nil, "", "", nil},
		"confirmed now":         {ptr.To(object("", "", "", "ann")), "true", "", ptr.To("bob")},
		"confirmed before":      {ptr.To(object("", "", "true", "ann")), "true", "", ptr.To("ann")},
		"confirmed, no user":    {ptr.To(object("", "", "true", "")), "true", "", ptr.To("")},
		"taken back":            {ptr.To(object("", "", "true", "ann")), "false", "", nil},
		"through a subresource": {ptr.To(object("", "", "", "")), "true", "status", ptr.To("forged")},
	} {
		t.Run(name, func(t *testing.T) {
			p := deletionConfirmationPlugin.New(plugin.Dependencies{})
			shoot := &gardencore.Shoot{ObjectMeta: object("", "", tc.confirmed, "forged")}
			operation, old := admission.Create, runtime.Object(nil)
			if tc.old != nil {
				operation, old = admission.Update, &gardencore.Shoot{ObjectMeta: *tc.old}
			}
			a := admission.NewAttributesRecord(shoot, old, gardencore.Kind("Shoot").WithVersion(""), "ns", "name",
				gardencore.Resource("shoots").WithVersion(""), tc.subresource, operation, nil, false, &user.DefaultInfo{Name: "bob"})
			if err := p.(admission.MutationInterface).Admit(context.Background(), a, nil); err != nil {
				t.Fatal(err)
			}
			if got, has := shoot.Annotations[v1beta1constants.DeletionConfirmedBy]; has != (tc.want != nil) || got != ptr.Deref(tc.want, "") {
				t.Fatalf("got %q, want %v", got, tc.want)
			}
		})
	}
}
