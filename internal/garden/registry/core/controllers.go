package core

import (
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func controllerRegistrations() resource.Definition[*gardencore.ControllerRegistration] {
	return resource.Definition[*gardencore.ControllerRegistration]{
		Resource: gardencore.Resource("controllerregistrations"), Kind: "ControllerRegistration",
		ShortNames: []string{"ctrlreg"}, Categories: all, Versions: v1beta1,
		Validate:       validation.ValidateControllerRegistration,
		ValidateUpdate: validation.ValidateControllerRegistrationUpdate,
		SpecChanged:    func(r, old *gardencore.ControllerRegistration) bool { return !resource.Equal(old.Spec, r.Spec) },
		Columns: []resource.Column[*gardencore.ControllerRegistration]{
			{Name: "Resources", Description: "The extension resources that the controller is for.",
				Value: func(r *gardencore.ControllerRegistration) any {
					var kinds []string
					for _, res := range r.Spec.Resources {
						kinds = append(kinds, res.Kind+"/"+res.Type)
					}
					return strings.Join(kinds, ", ")
				}},
		},
	}
}

func controllerDeployments() resource.Definition[*gardencore.ControllerDeployment] {
	return resource.Definition[*gardencore.ControllerDeployment]{
		Resource: gardencore.Resource("controllerdeployments"), Kind: "ControllerDeployment",
		ShortNames: []string{"ctrldeploy"}, Categories: all,
		Versions:       []string{"v1", "v1beta1"},
		Validate:       validation.ValidateControllerDeployment,
		ValidateUpdate: validation.ValidateControllerDeploymentUpdate,
		// A ControllerDeployment has no spec. A change of injectGardenKubeconfig does not increase the generation.
		SpecChanged: func(d, old *gardencore.ControllerDeployment) bool {
			return d.Type != old.Type || !resource.Equal(d.ProviderConfig, old.ProviderConfig) ||
				!resource.Equal(d.Helm, old.Helm) || !resource.Equal(d.Resources, old.Resources)
		},
	}
}

func controllerInstallations() resource.Definition[*gardencore.ControllerInstallation] {
	condition := func(kind gardencore.ConditionType) func(*gardencore.ControllerInstallation) any {
		return func(i *gardencore.ControllerInstallation) any { return conditionStatus(i.Status.Conditions, kind) }
	}
	return resource.Definition[*gardencore.ControllerInstallation]{
		Resource: gardencore.Resource("controllerinstallations"), Kind: "ControllerInstallation",
		ShortNames: []string{"ctrlinst"}, Categories: all, Versions: v1beta1,
		Validate:       validation.ValidateControllerInstallation,
		ValidateUpdate: validation.ValidateControllerInstallationUpdate,
		CopySpec:       func(to, from *gardencore.ControllerInstallation) { to.Spec = from.Spec },
		CopyStatus:     func(to, from *gardencore.ControllerInstallation) { to.Status = from.Status },
		SpecChanged:    func(i, old *gardencore.ControllerInstallation) bool { return !resource.Equal(old.Spec, i.Spec) },
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
		Indexed: []string{gardencore.SeedRefName, gardencore.RegistrationRefName, gardencore.ShootRefName, gardencore.ShootRefNamespace},
		Columns: []resource.Column[*gardencore.ControllerInstallation]{
			{Name: "Registration", Description: "The ControllerRegistration.",
				Value: func(i *gardencore.ControllerInstallation) any { return i.Spec.RegistrationRef.Name }},
			{Name: "Cluster", Description: "The seed, or the self-hosted shoot, that it is installed in.", Value: installedIn},
			{Name: "Valid", Description: "Condition Valid.", Value: condition(gardencore.ControllerInstallationValid)},
			{Name: "Installed", Description: "Condition Installed.", Value: condition(gardencore.ControllerInstallationInstalled)},
			{Name: "Healthy", Description: "Condition Healthy.", Value: condition(gardencore.ControllerInstallationHealthy)},
			{Name: "Progressing", Description: "Condition Progressing.", Value: condition(gardencore.ControllerInstallationProgressing)},
		},
	}
}

func installedIn(i *gardencore.ControllerInstallation) any {
	switch {
	case i.Spec.SeedRef != nil:
		return "Seed/" + i.Spec.SeedRef.Name
	case i.Spec.ShootRef != nil:
		return "Shoot/" + i.Spec.ShootRef.Namespace + "/" + i.Spec.ShootRef.Name
	}
	return resource.Unknown
}
