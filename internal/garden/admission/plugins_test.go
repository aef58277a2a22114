package admission

import (
	"slices"
	"testing"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// TestPlugins checks that the plugins are those that Gardener v1.149 enables by default, in Gardener's order: each
// plugin sees what the plugins before it have defaulted.
func TestPlugins(t *testing.T) {
	want := []string{
		"ResourceReferenceManager",
		"ExtensionValidator",
		"ExtensionLabels",
		"ShootTolerationRestriction",
		"ShootExposureClass",
		"ShootDNS",
		"ShootManagedSeed",
		"ShootQuotaValidator",
		"ShootMutator",
		"ShootValidator",
		"SeedValidator",
		"SeedMutator",
		"ControllerRegistrationResources",
		"NamespacedCloudProfileValidator",
		"ProjectMutator",
		"DeletionConfirmation",
		"FinalizerRemoval",
		"CustomVerbAuthorizer",
		"ShootVPAEnabledByDefault",
		"ShootResourceReservation",
		"ManagedSeed",
		"ManagedSeedShoot",
		"Bastion",
		"BackupBucketValidator",
	}
	var got []string
	for _, factory := range Plugins() {
		got = append(got, factory.Name)
		if factory.Admit == nil && factory.Validate == nil {
			t.Errorf("%s does nothing", factory.Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestNew checks that the chain can be created without any dependency, that is, before there is a storage.
func TestNew(t *testing.T) {
	if chain := New(plugin.Dependencies{}); len(chain) != len(Plugins()) {
		t.Errorf("got %v", chain)
	}
}
