package admission

import (
	"context"
	"reflect"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

func TestAdmitProjectMutator(t *testing.T) {
	subject := func(name string) *rbacv1.Subject {
		return &rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: name}
	}
	member := func(name string, roles ...string) gardencore.ProjectMember {
		return gardencore.ProjectMember{Subject: *subject(name), Roles: roles}
	}
	for name, test := range map[string]struct {
		op          admission.Operation
		subresource string
		deleting    bool
		spec, want  gardencore.ProjectSpec
	}{
		"create": {op: admission.Create, want: gardencore.ProjectSpec{CreatedBy: subject("jane"), Owner: subject("jane"),
			Members: []gardencore.ProjectMember{member("jane", "admin", "owner")}}},
		"create with owner": {op: admission.Create,
			spec: gardencore.ProjectSpec{CreatedBy: subject("liar"), Owner: subject("joe"),
				Members: []gardencore.ProjectMember{member("joe", "viewer")}},
			want: gardencore.ProjectSpec{CreatedBy: subject("jane"), Owner: subject("joe"),
				Members: []gardencore.ProjectMember{member("joe", "viewer")}}},
		"create with an owner among the members": {op: admission.Create,
			spec: gardencore.ProjectSpec{Members: []gardencore.ProjectMember{member("joe", "admin", "owner")}},
			want: gardencore.ProjectSpec{CreatedBy: subject("jane"), Owner: subject("joe"),
				Members: []gardencore.ProjectMember{member("joe", "admin", "owner")}}},
		"update": {op: admission.Update},
		"update with new owner": {op: admission.Update, spec: gardencore.ProjectSpec{Owner: subject("joe")},
			want: gardencore.ProjectSpec{Owner: subject("joe"), Members: []gardencore.ProjectMember{member("joe", "admin", "owner")}}},
		"update of deleted one": {op: admission.Update, deleting: true, spec: gardencore.ProjectSpec{Owner: subject("joe")},
			want: gardencore.ProjectSpec{Owner: subject("joe")}},
		"update of a status": {op: admission.Update, subresource: "status", spec: gardencore.ProjectSpec{Owner: subject("joe")},
			want: gardencore.ProjectSpec{Owner: subject("joe")}},
		"create, owner is added": {op: admission.Create, spec: gardencore.ProjectSpec{Owner: subject("joe"),
			Members: []gardencore.ProjectMember{member("ann", "owner")}}, want: gardencore.ProjectSpec{CreatedBy: subject("jane"),
			Owner: subject("joe"), Members: []gardencore.ProjectMember{member("ann", "owner"), member("joe", "admin", "owner")}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := projectMutatorPlugin.New(plugin.Dependencies{})
			project := &gardencore.Project{Spec: test.spec}
			if test.deleting {
				project.DeletionTimestamp = &metav1.Time{}
			}
			err := p.(admission.MutationInterface).Admit(context.Background(),
				admission.NewAttributesRecord(project, &gardencore.Project{}, gardencore.Kind("Project").WithVersion("v1beta1"), "",
					"p", gardencore.Resource("projects").WithVersion("v1beta1"), test.subresource, test.op, nil, false,
					&user.DefaultInfo{Name: "jane"}), nil)
			if err != nil || !reflect.DeepEqual(project.Spec, test.want) {
				t.Errorf("got %+v, %v, want %+v", project.Spec, err, test.want)
			}
		})
	}
}
