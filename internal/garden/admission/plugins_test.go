package admission

import (
	"slices"
	"testing"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// TestPlugins wants the plugins that are on in Gardener v1.149 unless its operator says otherwise, in Gardener's order:
// each sees what those before it filled in.
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
		if factory.New == nil {
			t.Errorf("%s cannot be made", factory.Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestNew wants a chain of all plugins that needs nothing to be made, so that it can be made before there is a storage.
func TestNew(t *testing.T) {
	chain, err := New(plugin.Dependencies{})
	if err != nil || chain == nil {
		t.Errorf("got %v, %v", chain, err)
	}
}
