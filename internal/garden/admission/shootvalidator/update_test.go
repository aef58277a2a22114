package shootvalidator

import (
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func migrating(s *gardencore.Shoot) {
	s.Status.LastOperation = &gardencore.LastOperation{Type: gardencore.LastOperationTypeMigrate,
		State: gardencore.LastOperationStateProcessing}
}

func TestUpdate(t *testing.T) {
	type change = func(s *gardencore.Shoot, l *landscape)
	none := func(*gardencore.Shoot, *landscape) {}
	image := func(version string) change {
		return func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Image.Version = version }
	}
	annotate := func(key string) change {
		return func(s *gardencore.Shoot, _ *landscape) { s.Annotations = map[string]string{key: "true"} }
	}
	credentials := func(name string) change {
		return func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.SecretBindingName, s.Spec.CredentialsBindingName = nil, &name
		}
	}
	bare := func(_ *gardencore.Shoot, l *landscape) { // empties the profile
		l.profile.Spec = gardencore.CloudProfileSpec{Type: "local"}
	}
	for name, test := range map[string]struct {
		before, after change // before is for the old Shoot and the landscape, after for the new one
		fields        string
	}{
		"what stays is not looked at": {bare, annotate("x"), ""},
		"nothing changes":             {func(_ *gardencore.Shoot, l *landscape) { l.profile.Name = "gone" }, none, ""},
		"seed taken away":             {none, func(s *gardencore.Shoot, _ *landscape) { s.Spec.SeedName = nil }, "spec.seedName"},
		"seed without binding":        {none, func(s *gardencore.Shoot, _ *landscape) { s.Spec.SeedName = new("seed2") }, "spec.seedName"},
		"selector taken away": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.SeedSelector = &gardencore.SeedSelector{} },
			func(s *gardencore.Shoot, _ *landscape) { s.Spec.SeedSelector = nil }, "spec.seedSelector"},
		"change amid a migration": {func(s *gardencore.Shoot, _ *landscape) { migrating(s) },
			func(s *gardencore.Shoot, _ *landscape) { s.Spec.Tolerations = []gardencore.Toleration{{}} }, "spec"},
		"annotation amid a migration": {func(s *gardencore.Shoot, _ *landscape) { migrating(s) }, annotate("x"), ""},
		"change before a migration": {func(s *gardencore.Shoot, _ *landscape) {
			s.Status.SeedName, s.Status.LastOperation = new("seed2"), &gardencore.LastOperation{}
		}, func(s *gardencore.Shoot, _ *landscape) { s.Spec.Tolerations = []gardencore.Toleration{{}} }, "spec"},
		"annotation with leaving seed": {func(_ *gardencore.Shoot, l *landscape) { l.seed.DeletionTimestamp = &metav1.Time{Time: now} },
			annotate("x"), "metadata.annotations"},
		"deletion with leaving seed": {func(_ *gardencore.Shoot, l *landscape) { l.seed.DeletionTimestamp = &metav1.Time{Time: now} },
			annotate(v1beta1constants.ConfirmationDeletion), ""},
		"spec with leaving seed": {func(_ *gardencore.Shoot, l *landscape) { l.seed.DeletionTimestamp = &metav1.Time{Time: now} },
			func(s *gardencore.Shoot, _ *landscape) { s.Spec.Tolerations = []gardencore.Toleration{{}} }, "spec"},
		"hibernation that would last": {func(s *gardencore.Shoot, _ *landscape) {
			s.Status.Constraints = []gardencore.Condition{{Type: gardencore.ShootHibernationPossible, Status: gardencore.ConditionFalse}}
		}, func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Hibernation = &gardencore.Hibernation{Enabled: new(true)}
		}, "spec.hibernation.enabled"},
		"profile of the family": {none, func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.CloudProfile = &gardencore.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "mine"}
		}, ""},
		"profile of another family": {none, func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.CloudProfile = &gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "other"}
		}, "spec.cloudProfile"},
		"profile with less": {func(_ *gardencore.Shoot, l *landscape) { l.namespaced.Status.CloudProfileSpec.MachineTypes = nil },
			func(s *gardencore.Shoot, _ *landscape) {
				s.Spec.CloudProfile = &gardencore.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "mine"}
			}, "spec.cloudProfile"},
		"pinned without permission": {none, func(s *gardencore.Shoot, _ *landscape) { pinTo(s, "1") }, "spec.controlPlane.zones"},
		"stays pinned":              {func(s *gardencore.Shoot, _ *landscape) { pinTo(s, "2") }, annotate("x"), ""},
		"pinned to more zones": {func(s *gardencore.Shoot, _ *landscape) { pinTo(s, "1") },
			func(s *gardencore.Shoot, _ *landscape) { pinTo(s, "1", "2", "3") }, "spec.controlPlane.zones[1] spec.controlPlane.zones[2]"},
		"same secret, new binding":      {none, credentials("credentials"), ""},
		"other secret, new binding":     {none, credentials("others"), "spec.credentialsBindingName"},
		"credentials of others":         {credentials("credentials"), credentials("others"), "spec.credentialsBindingName"},
		"expired Kubernetes on the way": {none, func(s *gardencore.Shoot, _ *landscape) { s.Spec.Kubernetes.Version = "1.33.2" }, ""},
		"expired image on the way":      {none, image("1.1.0"), ""},
		"expired image on the way back": {image("2.0.0"), image("1.1.0"), firstPool + ".machine.image"},
		"update in place": {func(s *gardencore.Shoot, l *landscape) {
			image("1.1.0")(s, l)
			s.Spec.Provider.Workers[0].UpdateStrategy = new(gardencore.AutoInPlaceUpdate)
		}, image("2.0.0"), ""},
		"update in place from too old": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Provider.Workers[0].UpdateStrategy = new(gardencore.AutoInPlaceUpdate)
		}, image("2.0.0"), firstPool + ".machine.image"},
		"expired image for a new pool": {none, func(s *gardencore.Shoot,
			l *landscape) {
			image("1.1.0")(s, l)
			s.Spec.Provider.Workers[0].Name = "new"
		}, firstPool + ".machine.image"},
		"machine type is gone": {func(_ *gardencore.Shoot, l *landscape) { withCapabilities(l); l.profile.Spec.MachineTypes = nil },
			annotate("x"), firstPool + ".machine.type"},
		"machine type is gone, deleted": {func(s *gardencore.Shoot, l *landscape) {
			withCapabilities(l)
			l.profile.Spec.MachineTypes = nil
			s.DeletionTimestamp = &metav1.Time{Time: now}
		}, annotate("x"), ""},
		"secret without kubeconfig": {func(_ *gardencore.Shoot, l *landscape) {
			l.kube = append(l.kube, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "k", Namespace: "garden-p"}})
		}, listKubeconfig, "spec.kubernetes.kubeAPIServer.admissionPlugins[0].kubeconfigSecretName"},
		"secret with kubeconfig": {func(_ *gardencore.Shoot, l *landscape) {
			l.kube = append(l.kube,
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "k", Namespace: "garden-p"}, Data: map[string][]byte{"kubeconfig": {}}})
		}, listKubeconfig, ""},
		"managed issuer": {withIssuer, func(s *gardencore.Shoot, _ *landscape) { s.Annotations = map[string]string{managed: "managed"} }, ""},
		"managed and own issuer": {withIssuer, func(s *gardencore.Shoot, _ *landscape) {
			s.Annotations = map[string]string{managed: "managed"}
			s.Spec.Kubernetes.KubeAPIServer = &gardencore.KubeAPIServerConfig{
				ServiceAccountConfig: &gardencore.ServiceAccountConfig{Issuer: new("x")}}
		}, "metadata.annotations[" + managed + "]"},
		"managed issuer taken away": {func(s *gardencore.Shoot, l *landscape) {
			withIssuer(s, l)
			s.Annotations = map[string]string{managed: "managed"}
		}, func(s *gardencore.Shoot, _ *landscape) { s.Annotations = nil }, "metadata.annotations[" + managed + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			old, l := newShoot(), newLandscape()
			test.before(old, l)
			shoot := old.DeepCopy()
			test.after(shoot, l)
			check(t, l.newPlugin(t).Validate(t.Context(), attributes(shoot, old, admission.Update, "", "user"), nil), test.fields)
		})
	}
}

func listKubeconfig(s *gardencore.Shoot, _ *landscape) {
	s.Spec.Kubernetes.KubeAPIServer = withKubeconfig("k")
	s.Spec.Resources = make([]gardencore.NamedResourceReference, 1)
	ref := &s.Spec.Resources[0].ResourceRef
	ref.APIVersion, ref.Kind, ref.Name = "v1", "Secret", "k"
}

func withIssuer(_ *gardencore.Shoot, l *landscape) {
	l.kube = append(l.kube, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "issuer", Namespace: v1beta1constants.GardenNamespace,
		Labels: map[string]string{v1beta1constants.GardenRole: v1beta1constants.GardenRoleShootServiceAccountIssuer}}})
}

func TestBinding(t *testing.T) {
	distances := func(text string) func(*gardencore.Shoot, *landscape) {
		return func(s *gardencore.Shoot, l *landscape) {
			l.seed2.Spec.Provider.Region = "r2"
			s.Spec.ControlPlane = &gardencore.ControlPlane{HighAvailability: &gardencore.HighAvailability{}}
			s.Annotations = map[string]string{live: "true"}
			l.kube = append(l.kube, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "regions", Namespace: v1beta1constants.GardenNamespace,
				Labels:      map[string]string{v1beta1constants.SchedulingPurpose: v1beta1constants.SchedulingPurposeRegionConfig},
				Annotations: map[string]string{v1beta1constants.AnnotationSchedulingCloudProfiles: "x, profile"}}, Data: map[string]string{"r1": text}})
		}
	}
	for name, test := range map[string]struct {
		change func(s *gardencore.Shoot, l *landscape)
		to     string
		fields string
	}{
		"move":             {func(*gardencore.Shoot, *landscape) {}, "seed2", ""},
		"schedule":         {func(s *gardencore.Shoot, _ *landscape) { s.Spec.SeedName = nil }, "seed", ""},
		"same seed":        {func(*gardencore.Shoot, *landscape) {}, "seed", "spec.seedName"},
		"unknown old seed": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.SeedName = new("x") }, "seed", "spec.seedName"},
		"no backup":        {func(_ *gardencore.Shoot, l *landscape) { l.seed2.Spec.Backup = nil }, "seed2", "spec.seedName"},
		"internal domain": {func(_ *gardencore.Shoot, l *landscape) {
			l.seed2.Spec.DNS.Internal = &gardencore.SeedDNSProviderConfig{Domain: "x"}
		}, "seed2", "spec.seedName"},
		"pinned to a zone that the new seed has not": {func(s *gardencore.Shoot, l *landscape) {
			pinTo(s, "1")
			l.seed2.Spec.Provider.Zones = nil
		}, "seed2", ""},
		"default domain": {func(_ *gardencore.Shoot, l *landscape) { l.seed2.Spec.DNS.Defaults = nil }, "seed2", "spec.seedName"},
		"networks in use": {func(s *gardencore.Shoot, _ *landscape) {
			s.Status.Networking = &gardencore.NetworkingStatus{Nodes: []string{"242.0.0.0/8"}}
		}, "seed2", "status.networking.nodes status.networking.services status.networking.pods"},
		"live":                {distances("r2: 180"), "seed2", ""},
		"live and far":        {distances("r2: 181"), "seed2", "spec.seedName"},
		"live and unknown":    {distances("r3: 1"), "seed2", "spec.seedName"},
		"live and unreadable": {distances("{"), "seed2", "spec.seedName"},
		"live and alone": {func(s *gardencore.Shoot, _ *landscape) { s.Annotations = map[string]string{live: "true"} },
			"seed2", "spec.seedName"},
		"live and silent": {func(s *gardencore.Shoot, l *landscape) { distances("r2: 1")(s, l); l.seed2.Status.Gardener = nil },
			"seed2", "spec.seedName"},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, validation.FeatureGate, validation.LiveControlPlaneMigration, true)
			old, l := newShoot(), newLandscape()
			test.change(old, l)
			shoot := old.DeepCopy()
			shoot.Spec.SeedName = &test.to
			check(t, l.newPlugin(t).Validate(t.Context(), attributes(shoot, old, admission.Update, "binding", "user"), nil), test.fields)
		})
	}
	shoot := newShoot()
	shoot.Spec.SeedName, shoot.Spec.Region = new("seed2"), "moon"
	check(t, newLandscape().newPlugin(t).Validate(t.Context(), attributes(shoot, newShoot(), admission.Update, "binding", "user"), nil),
		"spec")
}

func TestDelete(t *testing.T) {
	shoot := newShoot()
	p := newLandscape().newPlugin(t)
	check(t, p.Validate(t.Context(), attributes(shoot, shoot, admission.Delete, "", "user"), nil), "")
	migrating(shoot)
	check(t, p.Validate(t.Context(), attributes(shoot, shoot, admission.Delete, "", "user"), nil), "metadata.deletionTimestamp")
}
