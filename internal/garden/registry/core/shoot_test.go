package core

import (
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func shoot(change ...func(*gardencore.Shoot)) *gardencore.Shoot {
	s := &gardencore.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden-dev", Generation: 1, Annotations: map[string]string{}},
		Spec: gardencore.ShootSpec{
			CloudProfile: &gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			Provider:     gardencore.Provider{Type: "local", Workers: []gardencore.Worker{{Name: "w"}}},
		},
		Status: gardencore.ShootStatus{LastOperation: &gardencore.LastOperation{State: gardencore.LastOperationStateSucceeded}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func operation(value string) func(*gardencore.Shoot) {
	return func(s *gardencore.Shoot) { s.Annotations["gardener.cloud/operation"] = value }
}

func failed(s *gardencore.Shoot) { s.Status.LastOperation.State = gardencore.LastOperationStateFailed }

func confined(s *gardencore.Shoot) {
	s.Spec.Maintenance = &gardencore.Maintenance{ConfineSpecUpdateRollout: ptr.To(true)}
}

// TestShootGeneration says when a gardenlet has to look at a Shoot again, and whether the annotation that asked for it
// stays.
func TestShootGeneration(t *testing.T) {
	for name, test := range map[string]struct {
		old, updated *gardencore.Shoot
		moves        bool
		annotation   string
	}{
		"nothing":                              {shoot(), shoot(), false, ""},
		"spec":                                 {shoot(), shoot(func(s *gardencore.Shoot) { s.Spec.Region = "new" }), true, ""},
		"spec, confined to maintenance":        {shoot(confined), shoot(confined, func(s *gardencore.Shoot) { s.Spec.Region = "new" }), false, ""},
		"hibernation, confined to maintenance": {shoot(confined), shoot(confined, func(s *gardencore.Shoot) { s.Spec.Hibernation = &gardencore.Hibernation{Enabled: ptr.To(true)} }), true, ""},
		"reconcile":                            {shoot(), shoot(operation("reconcile")), true, ""},
		"reconcile, failed":                    {shoot(failed), shoot(failed, operation("reconcile")), false, "reconcile"},
		"retry, failed":                        {shoot(failed), shoot(failed, operation("retry")), true, ""},
		"retry, not failed":                    {shoot(), shoot(operation("retry")), false, "retry"},
		"rotate-ssh-keypair":                   {shoot(), shoot(operation("rotate-ssh-keypair")), true, "rotate-ssh-keypair"},
		"rotate-ca-start":                      {shoot(), shoot(operation("rotate-ca-start")), true, "rotate-ca-start"},
		"rollout of workers":                   {shoot(), shoot(operation("rollout-workers=w")), true, "rollout-workers=w"},
		"unknown to the strategy":              {shoot(), shoot(operation("maintain")), false, "maintain"},
		"force deletion":                       {shoot(), shoot(func(s *gardencore.Shoot) { s.Annotations["confirmation.gardener.cloud/force-deletion"] = "true" }), true, ""},
		"rotate-ssh-keypair, no SSH":           {shoot(noSSH), shoot(noSSH, operation("rotate-ssh-keypair")), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if moves := shootSpecChanged(test.updated, test.old); moves != test.moves {
				t.Errorf("the generation moves: %t", moves)
			}
			if got := test.updated.Annotations["gardener.cloud/operation"]; got != test.annotation {
				t.Errorf("the annotation is %q, should be %q", got, test.annotation)
			}
		})
	}
}

func noSSH(s *gardencore.Shoot) {
	s.Spec.Provider.WorkersSettings = &gardencore.WorkersSettings{SSHAccess: &gardencore.SSHAccess{Enabled: false}}
}

func TestSeedLabels(t *testing.T) {
	s := shoot(func(s *gardencore.Shoot) {
		s.Labels = map[string]string{seedLabelPrefix + "gone": "true", "own": "label"}
		s.Spec.SeedName, s.Status.SeedName = ptr.To("new"), ptr.To("old")
	})
	canonicalizeShoot(s)
	if len(s.Labels) != 3 || s.Labels[seedLabelPrefix+"new"] != "true" || s.Labels[seedLabelPrefix+"old"] != "true" || s.Labels["own"] != "label" {
		t.Errorf("labels are %v", s.Labels)
	}
}

func TestCloudProfileFieldsSayTheSame(t *testing.T) {
	byName := shoot(func(s *gardencore.Shoot) { s.Spec.CloudProfile, s.Spec.CloudProfileName = nil, ptr.To("named") })
	syncCloudProfileFields(nil, byName)
	if byName.Spec.CloudProfile == nil || byName.Spec.CloudProfile.Name != "named" || byName.Spec.CloudProfile.Kind != "CloudProfile" {
		t.Errorf("by name: %+v", byName.Spec.CloudProfile)
	}
	byRef := shoot()
	syncCloudProfileFields(nil, byRef)
	if ptr.Deref(byRef.Spec.CloudProfileName, "") != "local" {
		t.Error("by reference: no name")
	}
	namespaced := shoot(func(s *gardencore.Shoot) {
		s.Spec.CloudProfile.Kind, s.Spec.CloudProfileName = "NamespacedCloudProfile", ptr.To("stale")
	})
	syncCloudProfileFields(shoot(), namespaced)
	if namespaced.Spec.CloudProfileName != nil && namespaced.Spec.CloudProfile.Kind != "CloudProfile" {
		t.Errorf("namespaced: name %s", *namespaced.Spec.CloudProfileName)
	}
}
