package admission

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// TestPlugins checks that the plugins are those of Gardener v1.150, in Gardener's order: each plugin sees what the plugins before
// it have defaulted.
func TestPlugins(t *testing.T) {
	want := []string{
		"ResourceReferenceManager",
		"ExtensionValidator",
		"ExtensionLabels",
		"ShootTolerationRestriction",
		"ShootExposureClass",
		"ShootDNS",
		"ShootManagedSeed",
		"ShootNodeLocalDNSEnabledByDefault",
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
	if chain := New(plugin.Dependencies{}, Selection{}); len(chain) != len(Plugins())-1 {
		t.Errorf("got %v", chain)
	}
}

func TestSelection(t *testing.T) {
	s := Selection{Enable: []string{"ShootNodeLocalDNSEnabledByDefault", "AlwaysPullImages"},
		Disable: []string{"ShootDNS", "ShootDNSRewriting", "ValidatingAdmissionWebhook"}}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if chain := New(plugin.Dependencies{}, s); len(chain) != len(Plugins())-1 {
		t.Errorf("%d plugins of %d", len(chain), len(Plugins()))
	}
	want := Selection{[]string{"AlwaysPullImages"}, []string{"ValidatingAdmissionWebhook"}}
	if got := s.Kubernetes(); !reflect.DeepEqual(got, want) {
		t.Errorf("of Kubernetes: %v", got)
	}
	noPlugin := `there is no plugin "ShootDSN": there are those of kube-apiserver and ResourceReferenceManager, `
	for says, s := range map[string]Selection{
		"--enable-admission-plugins: " + noPlugin:            {Enable: []string{"ShootDSN"}},
		`--disable-admission-plugins: there is no plugin ""`: {Disable: []string{""}},
		"ShootDNSRewriting needs a configuration":            {Enable: []string{"ShootDNSRewriting"}},
		"ShootDNS is in --enable-admission-plugins and in --disable-admission-plugins": {
			[]string{"ShootDNS"}, []string{"ShootDNS"}},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", s, err)
		}
	}
}
