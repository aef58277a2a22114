package core

import (
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/core"
)

func cloudProfiles() resource.Definition[*gardencore.CloudProfile] {
	return resource.Definition[*gardencore.CloudProfile]{
		Resource: gardencore.Resource("cloudprofiles"), Singular: "cloudprofile", ShortNames: []string{"cprofile", "cpfl"}, Versions: v1beta1, Unconditional: true,
		New:            func() *gardencore.CloudProfile { return &gardencore.CloudProfile{} },
		NewList:        func() runtime.Object { return &gardencore.CloudProfileList{} },
		Validate:       validation.ValidateCloudProfile,
		ValidateUpdate: validation.ValidateCloudProfileUpdate,
		SpecChanged:    func(p, old *gardencore.CloudProfile) bool { return !resource.SpecEquality(old.Spec, p.Spec) },
		Columns: []resource.Column[*gardencore.CloudProfile]{
			{Name: "Type", About: "The provider type.", Value: func(p *gardencore.CloudProfile) any { return p.Spec.Type }},
		},
	}
}

func controllerDeployments() resource.Definition[*gardencore.ControllerDeployment] {
	return resource.Definition[*gardencore.ControllerDeployment]{
		Resource: gardencore.Resource("controllerdeployments"), Singular: "controllerdeployment", ShortNames: []string{"ctrldeploy"},
		Versions: append([]string{"v1"}, v1beta1...), Unconditional: true,
		New:            func() *gardencore.ControllerDeployment { return &gardencore.ControllerDeployment{} },
		NewList:        func() runtime.Object { return &gardencore.ControllerDeploymentList{} },
		Validate:       validation.ValidateControllerDeployment,
		ValidateUpdate: validation.ValidateControllerDeploymentUpdate,
		Columns: []resource.Column[*gardencore.ControllerDeployment]{
			{Name: "Type", About: "How the controller is deployed.", Value: func(d *gardencore.ControllerDeployment) any {
				if d.Helm != nil {
					return "helm"
				}
				return d.Type
			}},
		},
	}
}

func controllerRegistrations() resource.Definition[*gardencore.ControllerRegistration] {
	return resource.Definition[*gardencore.ControllerRegistration]{
		Resource: gardencore.Resource("controllerregistrations"), Singular: "controllerregistration", ShortNames: []string{"ctrlreg"}, Versions: v1beta1, Unconditional: true,
		New:            func() *gardencore.ControllerRegistration { return &gardencore.ControllerRegistration{} },
		NewList:        func() runtime.Object { return &gardencore.ControllerRegistrationList{} },
		Validate:       validation.ValidateControllerRegistration,
		ValidateUpdate: validation.ValidateControllerRegistrationUpdate,
		SpecChanged:    func(r, old *gardencore.ControllerRegistration) bool { return !resource.SpecEquality(old.Spec, r.Spec) },
		Columns: []resource.Column[*gardencore.ControllerRegistration]{
			{Name: "Resources", About: "The extension resources that the controller is for.", Value: func(r *gardencore.ControllerRegistration) any {
				var kinds []string
				for _, res := range r.Spec.Resources {
					kinds = append(kinds, res.Kind+"/"+res.Type)
				}
				if len(kinds) == 0 {
					return resource.None
				}
				return strings.Join(kinds, ", ")
			}},
		},
	}
}

func controllerInstallations() resource.Definition[*gardencore.ControllerInstallation] {
	condition := func(kind gardencore.ConditionType) func(*gardencore.ControllerInstallation) any {
		return func(i *gardencore.ControllerInstallation) any { return conditionStatus(i.Status.Conditions, kind) }
	}
	return resource.Definition[*gardencore.ControllerInstallation]{
		Resource: gardencore.Resource("controllerinstallations"), Singular: "controllerinstallation", ShortNames: []string{"ctrlinst"}, Versions: v1beta1,
		New:                  func() *gardencore.ControllerInstallation { return &gardencore.ControllerInstallation{} },
		NewList:              func() runtime.Object { return &gardencore.ControllerInstallationList{} },
		Validate:             validation.ValidateControllerInstallation,
		ValidateUpdate:       validation.ValidateControllerInstallationUpdate,
		ValidateStatusUpdate: validation.ValidateControllerInstallationStatusUpdate,
		CopySpec:             func(to, from *gardencore.ControllerInstallation) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.ControllerInstallation) { to.Status = from.Status },
		SpecChanged:          func(i, old *gardencore.ControllerInstallation) bool { return !resource.SpecEquality(old.Spec, i.Spec) },
		Fields: func(i *gardencore.ControllerInstallation) fields.Set {
			set := fields.Set{gardencore.RegistrationRefName: i.Spec.RegistrationRef.Name}
			if ref := i.Spec.SeedRef; ref != nil {
				set[gardencore.SeedRefName] = ref.Name
			}
			if ref := i.Spec.ShootRef; ref != nil {
				set[gardencore.ShootRefName], set[gardencore.ShootRefNamespace] = ref.Name, ref.Namespace
			}
			return set
		},
		Indexed: []string{gardencore.SeedRefName, gardencore.RegistrationRefName},
		Columns: []resource.Column[*gardencore.ControllerInstallation]{
			{Name: "Registration", About: "The ControllerRegistration.", Value: func(i *gardencore.ControllerInstallation) any { return i.Spec.RegistrationRef.Name }},
			{Name: "Seed", About: "The seed it is installed in.", Value: func(i *gardencore.ControllerInstallation) any {
				if i.Spec.SeedRef != nil {
					return i.Spec.SeedRef.Name
				}
				return resource.None
			}},
			{Name: "Valid", About: "Condition Valid.", Value: condition(gardencore.ControllerInstallationValid)},
			{Name: "Installed", About: "Condition Installed.", Value: condition(gardencore.ControllerInstallationInstalled)},
			{Name: "Healthy", About: "Condition Healthy.", Value: condition(gardencore.ControllerInstallationHealthy)},
			{Name: "Progressing", About: "Condition Progressing.", Value: condition(gardencore.ControllerInstallationProgressing)},
		},
	}
}

func exposureClasses() resource.Definition[*gardencore.ExposureClass] {
	return resource.Definition[*gardencore.ExposureClass]{
		Resource: gardencore.Resource("exposureclasses"), Singular: "exposureclass", ShortNames: []string{"expclass", "expcls"}, Versions: v1beta1, Unconditional: true,
		New:            func() *gardencore.ExposureClass { return &gardencore.ExposureClass{} },
		NewList:        func() runtime.Object { return &gardencore.ExposureClassList{} },
		Validate:       validation.ValidateExposureClass,
		ValidateUpdate: validation.ValidateExposureClassUpdate,
		Columns: []resource.Column[*gardencore.ExposureClass]{
			{Name: "Handler", About: "What the control plane's exposure is handled by.", Value: func(c *gardencore.ExposureClass) any { return c.Handler }},
		},
	}
}

func projects() resource.Definition[*gardencore.Project] {
	return resource.Definition[*gardencore.Project]{
		Resource: gardencore.Resource("projects"), Singular: "project", Versions: v1beta1,
		New:                  func() *gardencore.Project { return &gardencore.Project{} },
		NewList:              func() runtime.Object { return &gardencore.ProjectList{} },
		Validate:             validation.ValidateProject,
		ValidateUpdate:       validation.ValidateProjectUpdate,
		ValidateStatusUpdate: validation.ValidateProjectStatusUpdate,
		CopySpec:             func(to, from *gardencore.Project) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.Project) { to.Status = from.Status },
		SpecChanged:          func(p, old *gardencore.Project) bool { return !resource.SpecEquality(old.Spec, p.Spec) },
		Fields: func(p *gardencore.Project) fields.Set {
			return fields.Set{gardencore.ProjectNamespace: ptr.Deref(p.Spec.Namespace, "")}
		},
		Indexed: []string{gardencore.ProjectNamespace},
		Columns: []resource.Column[*gardencore.Project]{
			{Name: "Namespace", About: "The project's namespace.", Value: func(p *gardencore.Project) any { return ptr.Deref(p.Spec.Namespace, resource.Unknown) }},
			{Name: "Status", About: "The project's phase.", Value: func(p *gardencore.Project) any {
				if p.Status.Phase == "" {
					return resource.Unknown
				}
				return string(p.Status.Phase)
			}},
			{Name: "Owner", About: "Who is responsible for the project.", Value: func(p *gardencore.Project) any {
				if p.Spec.Owner != nil {
					return p.Spec.Owner.Name
				}
				return resource.Unknown
			}},
			{Name: "Creator", About: "Who created the project.", Value: func(p *gardencore.Project) any {
				if p.Spec.CreatedBy != nil {
					return p.Spec.CreatedBy.Name
				}
				return resource.Unknown
			}},
		},
	}
}
