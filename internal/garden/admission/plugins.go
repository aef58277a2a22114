// Package admission lists the garden's in-process admission plugins, in the order in which Gardener runs them. Each
// plugin has a folder. It may import plugin, request, what several plugins share (cloudprofile, seedcommon and
// shootcommon), the validation and the scheme, nothing else of this module.
package admission

import (
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/backupbucketvalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/bastionvalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/controllerregistrationresources"
	"github.com/gardenlite/gardenlite/internal/garden/admission/customverbauthorizer"
	"github.com/gardenlite/gardenlite/internal/garden/admission/deletionconfirmation"
	"github.com/gardenlite/gardenlite/internal/garden/admission/extensionlabels"
	"github.com/gardenlite/gardenlite/internal/garden/admission/extensionvalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/finalizerremoval"
	"github.com/gardenlite/gardenlite/internal/garden/admission/managedseedshoot"
	"github.com/gardenlite/gardenlite/internal/garden/admission/managedseedvalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/namespacedcloudprofilevalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/projectmutator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/resourcereferencemanager"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedmutator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedvalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootdns"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootexposureclass"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootmanagedseed"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootmutator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootquotavalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootresourcereservation"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shoottolerationrestriction"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootvalidator"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootvpa"
)

// Plugins returns the factories of the plugins that are always enabled: those that Gardener enables by default.
func Plugins() []plugin.Factory {
	return []plugin.Factory{
		resourcereferencemanager.Factory,
		extensionvalidator.Factory,
		extensionlabels.Factory,
		shoottolerationrestriction.Factory,
		shootexposureclass.Factory,
		shootdns.Factory,
		shootmanagedseed.Factory,
		shootquotavalidator.Factory,
		shootmutator.Factory,
		shootvalidator.Factory,
		seedvalidator.Factory,
		seedmutator.Factory,
		controllerregistrationresources.Factory,
		namespacedcloudprofilevalidator.Factory,
		projectmutator.Factory,
		deletionconfirmation.Factory,
		finalizerremoval.Factory,
		customverbauthorizer.Factory,
		shootvpa.Factory,
		shootresourcereservation.Factory,
		managedseedvalidator.Factory,
		managedseedshoot.Factory,
		bastionvalidator.Factory,
		backupbucketvalidator.Factory,
	}
}

// New creates all plugins.
func New(deps plugin.Dependencies) []admission.Interface {
	var chain []admission.Interface
	for _, factory := range Plugins() {
		chain = append(chain, factory.New(deps))
	}
	return chain
}
