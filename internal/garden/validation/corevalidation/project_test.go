package corevalidation

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func validProject() *gardencore.Project {
	return &gardencore.Project{ObjectMeta: objectMeta("dev", ""), Spec: gardencore.ProjectSpec{
		CreatedBy: ptr.To(user("alice")), Owner: ptr.To(user("alice")), Description: ptr.To("A project."),
		Purpose: ptr.To("Testing"), Namespace: ptr.To("garden-dev"),
		Members: []gardencore.ProjectMember{
			{Subject: user("alice"), Roles: []string{"owner", "admin", "extension:foo"}},
			{Subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "garden-dev", Name: "robot"}, Roles: []string{"viewer"}},
		},
		Tolerations: &gardencore.ProjectTolerations{Defaults: []gardencore.Toleration{{Key: "a"}},
			Whitelist: []gardencore.Toleration{{Key: "a"}}},
		DualApprovalForDeletion: []gardencore.DualApprovalForDeletion{
			{Resource: "shoots", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
	}}
}

func TestValidateProject(t *testing.T) {
	type p = gardencore.Project
	runMutations(t, validProject, ValidateProject, []mutation[p]{
		{"empty spec", func(p *p) { p.Spec = gardencore.ProjectSpec{} }, nil},
		{"name", func(p *p) { p.Name = "a--very-long" }, []string{"TooLong metadata.name", "Invalid metadata.name"}},
		{"reserved namespace", func(p *p) { p.Spec.Namespace = ptr.To("gardener-system-public"); p.Spec.Members[0].Name = "" },
			[]string{"Invalid spec.namespace"}},
		{"garden namespace", func(p *p) { p.Spec.Namespace = ptr.To("garden") }, nil},
		{"namespace prefix", func(p *p) { p.Spec.Namespace = ptr.To("dev") }, []string{"Invalid spec.namespace"}},
		{"namespace", func(p *p) { p.Spec.Namespace = ptr.To("garden-a.b") }, []string{"Invalid spec.namespace"}},
		{"empty texts", func(p *p) { p.Spec.Description, p.Spec.Purpose = ptr.To(""), ptr.To("") },
			[]string{"Required spec.description", "Required spec.purpose"}},
		{"texts", func(p *p) { p.Spec.Description, p.Spec.Purpose = ptr.To("<a>"), ptr.To("<a>") },
			[]string{"Forbidden spec.description", "Forbidden spec.purpose"}},
		{"people", func(p *p) {
			p.Spec.CreatedBy, p.Spec.Owner = &rbacv1.Subject{}, &rbacv1.Subject{Kind: "Group", Namespace: "a"}
		}, []string{
			"Required spec.createdBy.name", "NotSupported spec.createdBy.kind", "Required spec.owner.name",
			"NotSupported spec.owner.apiGroup", "Forbidden spec.owner.namespace"}},
		{"service account", func(p *p) {
			p.Spec.Members[1].Subject = rbacv1.Subject{Kind: "ServiceAccount", APIGroup: "x", Name: "A"}
		}, []string{
			"NotSupported spec.members[1].apiGroup", "Required spec.members[1].namespace", "Invalid spec.members[1].name"}},
		{"second owner", func(p *p) { p.Spec.Members[1].Roles = []string{"owner"} }, []string{"Forbidden spec.members[1].roles[0]"}},
		{"repeated member", func(p *p) { p.Spec.Members[1].Subject = user("alice") }, []string{"Duplicate spec.members[1]"}},
		{"service account as a user, too", func(p *p) { p.Spec.Members[0].Subject = user("system:serviceaccount:garden-dev:robot") },
			[]string{"Duplicate spec.members[1]"}},
		{"malformed service account", func(p *p) { p.Spec.Members[0].Subject = user("system:serviceaccount:a") },
			[]string{"Invalid spec.members[0].name"}},
		{"roles", func(p *p) {
			p.Spec.Members[1].Roles = []string{"viewer", "viewer", "x", "extension:" + strings.Repeat("a", 21), "extension:a/b"}
		}, []string{
			"Duplicate spec.members[1].roles[1]", "NotSupported spec.members[1].roles[2]", "TooLong spec.members[1].roles[3]",
			"Invalid spec.members[1].roles[4]"}},
		{"tolerations", func(p *p) { p.Spec.Tolerations.Whitelist = []gardencore.Toleration{{}} },
			[]string{"Required spec.tolerations.whitelist[0].key", "Forbidden spec.tolerations.defaults[0]"}},
		{"dual approval", func(p *p) {
			p.Spec.DualApprovalForDeletion = append(p.Spec.DualApprovalForDeletion, gardencore.DualApprovalForDeletion{},
				gardencore.DualApprovalForDeletion{Resource: "pods"}, gardencore.DualApprovalForDeletion{Resource: "shoots"})
			p.Spec.DualApprovalForDeletion[0].Selector.MatchLabels["?"] = ""
		}, []string{"Invalid spec.dualApprovalForDeletion[0].selector.matchLabels", "Required spec.dualApprovalForDeletion[1].resource",
			"NotSupported spec.dualApprovalForDeletion[2].resource", "Duplicate spec.dualApprovalForDeletion[3].resource"}},
	})
}

func TestValidateProjectUpdate(t *testing.T) {
	type p = gardencore.Project
	runMutations(t, validProject, after(validProject, ValidateProjectUpdate), []mutation[p]{
		{"creator", func(p *p) { p.Spec.CreatedBy.Name = "bob" }, []string{"Invalid spec.createdBy"}},
		{"namespace", func(p *p) { p.Spec.Namespace = nil }, []string{"Invalid spec.namespace"}},
		{"owner", func(p *p) { p.Spec.Owner.Name = "bob" }, nil},
		{"no owner", func(p *p) { p.Spec.Owner = nil }, []string{"Invalid spec.owner"}},
		{"texts", func(p *p) { p.Spec.Description, p.Spec.Purpose = ptr.To("<a>"), ptr.To("<a>") },
			[]string{"Forbidden spec.description", "Forbidden spec.purpose"}},
	})
	old := validProject()
	old.Spec.Description, old.Spec.Purpose = ptr.To("<a>"), ptr.To("<a>")
	wantErrors(t, ValidateProjectUpdate(old.DeepCopy(), old))

	ready := validProject()
	ready.Status.Phase = gardencore.ProjectReady
	wantErrors(t, ValidateProjectStatusUpdate(ready, validProject()))
	wantErrors(t, ValidateProjectStatusUpdate(validProject(), ready), "Invalid status.phase")
}
