// Package admission has the garden's in-process admission plugins; plugins.go lists them in the order in which Gardener
// runs them. A plugin is a file, or a folder if it takes several. It may import plugin, request, what several plugins
// share (cloudprofile, seedcommon and shootcommon), the validation and the scheme, nothing else of this module.
package admission

import (
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/managedseedvalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/namespacedcloudprofilevalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/resourcereferencemanager"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootmutator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootvalidator"
)

// Plugins returns the factories of all plugins, in the order in which they run.
func Plugins() []plugin.Factory {
	return []plugin.Factory{
		resourcereferencemanager.Factory,
		extensionPlugin,
		extensionLabelsPlugin,
		shootTolerationPlugin,
		shootExposureClassPlugin,
		shootDNSPlugin,
		shootManagedSeedPlugin,
		shootNodeLocalDNSPlugin,
		shootQuotaPlugin,
		shootmutator.Factory,
		shootvalidator.Factory,
		seedValidatorPlugin,
		seedMutatorPlugin,
		controllerRegistrationResourcesPlugin,
		namespacedcloudprofilevalidator.Factory,
		projectMutatorPlugin,
		deletionConfirmationPlugin,
		finalizerRemovalPlugin,
		customVerbPlugin,
		shootVPAPlugin,
		shootResourceReservationPlugin,
		managedseedvalidator.Factory,
		managedSeedShootPlugin,
		bastionPlugin,
		backupBucketPlugin,
	}
}

// New creates the plugins of a selection.
func New(deps plugin.Dependencies, selection Selection) []admission.Interface {
	var chain []admission.Interface
	for _, factory := range Plugins() {
		if selection.has(factory) {
			chain = append(chain, factory.New(deps))
		}
	}
	return chain
}
