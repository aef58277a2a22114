package seedmanagementvalidation

import (
	"slices"
	"strings"
	"testing"

	gardenletv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// said returns the errors as a list of type and field.
func said(errs field.ErrorList) string {
	var list []string
	for _, err := range errs {
		list = append(list, string(err.Type)[len("FieldValue"):]+" "+err.Field)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "garden", ResourceVersion: "1"}
}

func validConfiguration() *gardenletv1alpha1.GardenletConfiguration {
	return &gardenletv1alpha1.GardenletConfiguration{SeedConfig: &gardenletv1alpha1.SeedConfig{SeedTemplate: gardencorev1beta1.SeedTemplate{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "local"},
			DNS: gardencorev1beta1.SeedDNS{Internal: &gardencorev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "internal.example.org",
				CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"}}},
		},
	}}}
}

func managedSeed(change func(*gardenseedmanagement.ManagedSeed)) *gardenseedmanagement.ManagedSeed {
	m := &gardenseedmanagement.ManagedSeed{ObjectMeta: meta("m"), Spec: gardenseedmanagement.ManagedSeedSpec{
		Shoot:     &gardenseedmanagement.Shoot{Name: "s"},
		Gardenlet: gardenseedmanagement.GardenletConfig{Config: validConfiguration(), Bootstrap: ptr.To(gardenseedmanagement.BootstrapToken)},
	}}
	if change != nil {
		change(m)
	}
	return m
}

func annotated(operation string) func(*gardenseedmanagement.ManagedSeed) {
	return func(m *gardenseedmanagement.ManagedSeed) {
		m.Annotations = map[string]string{"gardener.cloud/operation": operation}
	}
}

func TestManagedSeed(t *testing.T) {
	type seed = gardenseedmanagement.ManagedSeed
	const operation = "metadata.annotations[gardener.cloud/operation]"
	for name, test := range map[string]struct {
		old, changed func(*seed)
		want         string
	}{
		"valid":           {nil, nil, ""},
		"no shoot":        {nil, func(m *seed) { m.Spec.Shoot = nil }, "Invalid spec.shoot, Required spec.shoot"},
		"shoot's name":    {nil, func(m *seed) { m.Spec.Shoot.Name = "" }, "Invalid spec.shoot, Required spec.shoot.name"},
		"operation":       {nil, annotated("reconcile"), ""},
		"bad operation":   {nil, annotated("force-redeploy"), "NotSupported " + operation},
		"two operations":  {annotated("renew-kubeconfig"), annotated("reconcile"), "Forbidden " + operation},
		"operation's end": {annotated("renew-kubeconfig"), nil, ""},
		"bad bootstrap": {nil, func(m *seed) { m.Spec.Gardenlet.Bootstrap = ptr.To[gardenseedmanagement.Bootstrap]("x") },
			"Invalid spec.gardenlet.bootstrap, NotSupported spec.gardenlet.bootstrap"},
		"merge": {nil, func(m *seed) { m.Spec.Gardenlet.MergeWithParent = ptr.To(true) }, "Invalid spec.gardenlet.mergeWithParent"},
		"of another kind": {nil, func(m *seed) { m.Spec.Gardenlet.Config = &corev1.ConfigMap{} },
			"Invalid spec.gardenlet.config, Invalid spec.gardenlet.config"},
		"was another kind": {func(m *seed) { m.Spec.Gardenlet.Config = &corev1.ConfigMap{} },
			func(m *seed) { m.Spec.Gardenlet.Config = nil }, ""},
		"deployment": {nil, func(m *seed) {
			m.Spec.Gardenlet.Deployment = &gardenseedmanagement.GardenletDeployment{ReplicaCount: ptr.To[int32](-1), ServiceAccountName: ptr.To("A"),
				Image: &gardenseedmanagement.Image{Ref: ptr.To("r"), Tag: ptr.To(""), PullPolicy: ptr.To[corev1.PullPolicy]("x")}}
		}, "Forbidden spec.gardenlet.deployment.image, Invalid spec.gardenlet.deployment.image.tag, Invalid " +
			"spec.gardenlet.deployment.replicaCount, Invalid spec.gardenlet.deployment.serviceAccountName, NotSupported " +
			"spec.gardenlet.deployment.image.pullPolicy"},
	} {
		if got := said(ValidateManagedSeedUpdate(managedSeed(test.changed), managedSeed(test.old))); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	bad := managedSeed(func(m *seed) { m.Status.ObservedGeneration = -1 })
	if got := said(ValidateManagedSeedStatusUpdate(bad, bad)); got != "Invalid status.observedGeneration" {
		t.Error(got)
	}
}

// TestConnection checks which kubeconfigs are allowed for each kind of bootstrapping.
func TestConnection(t *testing.T) {
	const path = "spec.gardenlet.config.gardenClientConnection."
	full := gardenletv1alpha1.GardenClientConnection{BootstrapKubeconfig: &corev1.SecretReference{},
		KubeconfigSecret: &corev1.SecretReference{}}
	with := full
	with.Kubeconfig = "k"
	for _, test := range []struct {
		bootstrap  gardenseedmanagement.Bootstrap
		merge      bool
		connection gardenletv1alpha1.GardenClientConnection
		want       string
	}{
		{gardenseedmanagement.BootstrapToken, false, full, ""},
		{gardenseedmanagement.BootstrapServiceAccount, false, with, "Forbidden " + path + "kubeconfig"},
		{gardenseedmanagement.BootstrapNone, true, full, "Forbidden " + path + "bootstrapKubeconfig, Forbidden " + path + "kubeconfigSecret"},
		{gardenseedmanagement.BootstrapNone, true, gardenletv1alpha1.GardenClientConnection{}, ""},
		{gardenseedmanagement.BootstrapNone, false, gardenletv1alpha1.GardenClientConnection{}, "Required " + path + "kubeconfig"},
	} {
		m := managedSeed(func(m *gardenseedmanagement.ManagedSeed) {
			m.Spec.Gardenlet = gardenseedmanagement.GardenletConfig{Bootstrap: &test.bootstrap, MergeWithParent: &test.merge,
				Config: &gardenletv1alpha1.GardenletConfiguration{GardenClientConnection: &test.connection}}
		})
		if got := said(ValidateManagedSeed(m)); got != test.want {
			t.Errorf("%s, merged %t: %s", test.bootstrap, test.merge, got)
		}
	}
}

func TestConfiguration(t *testing.T) {
	type config = gardenletv1alpha1.GardenletConfiguration
	type controllers = gardenletv1alpha1.GardenletControllerConfiguration
	negative := ptr.To(-1)
	for want, change := range map[string]func(*config){
		"":                                     nil,
		"NotSupported logLevel":                func(c *config) { c.LogLevel = "x" },
		"NotSupported logFormat":               func(c *config) { c.LogFormat = "x" },
		"Forbidden c.seedConfig.metadata.name": func(c *config) { c.SeedConfig.Name = "x" },
		"Invalid c.seedConfig.metadata.labels": func(c *config) { c.SeedConfig.Labels = map[string]string{"a": "?"} },
		"Invalid c.resources.reserved.x": func(c *config) {
			c.Resources = &gardenletv1alpha1.ResourcesConfiguration{Reserved: corev1.ResourceList{"x": {}}}
		},
		"Invalid c.sni.ingress.serviceExternalIP": func(c *config) {
			c.SNI = &gardenletv1alpha1.SNI{Ingress: &gardenletv1alpha1.SNIIngress{ServiceExternalIP: ptr.To("x")}}
		},
		"Invalid c.exposureClassHandlers[0].loadBalancerService.class, Invalid c.exposureClassHandlers[0].name": func(c *config) {
			c.ExposureClassHandlers = []gardenletv1alpha1.ExposureClassHandler{
				{Name: "?", LoadBalancerService: gardenletv1alpha1.LoadBalancerServiceConfig{Class: ptr.To("?")}}}
		},
		"Invalid c.controllers.bastion.concurrentSyncs": func(c *config) {
			c.Controllers = &controllers{Bastion: &gardenletv1alpha1.BastionControllerConfiguration{ConcurrentSyncs: negative}}
		},
		"Invalid c.controllers.shoot.dnsEntryTTLSeconds, Invalid c.controllers.shoot.progressReporterPeriod": func(c *config) {
			c.Controllers = &controllers{Shoot: &gardenletv1alpha1.ShootControllerConfiguration{
				DNSEntryTTLSeconds: ptr.To[int64](29), ProgressReportPeriod: &metav1.Duration{Duration: -1}}}
		},
		"Forbidden c.controllers.backupEntry.deletionGracePeriodShootPurposes, " +
			"NotSupported c.controllers.backupEntry.deletionGracePeriodShootPurposes[1]": func(c *config) {
			c.Controllers = &controllers{BackupEntry: &gardenletv1alpha1.BackupEntryControllerConfiguration{
				DeletionGracePeriodShootPurposes: []gardencorev1beta1.ShootPurpose{"testing", "x"}}}
		},
		"Invalid c.gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin": func(c *config) {
			c.GardenClientConnection = &gardenletv1alpha1.GardenClientConnection{KubeconfigValidity: &gardenletv1alpha1.KubeconfigValidity{
				AutoRotationJitterPercentageMin: ptr.To[int32](9), AutoRotationJitterPercentageMax: ptr.To[int32](9)}}
		},
	} {
		c := validConfiguration()
		if change != nil {
			change(c)
		}
		if got := said(validateConfiguration(c, connectionRules{bootstrap: gardenseedmanagement.BootstrapToken},
			field.NewPath("c"))); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

func TestGardenlet(t *testing.T) {
	g := &gardenseedmanagement.Gardenlet{ObjectMeta: meta("g"), Spec: gardenseedmanagement.GardenletSpec{Config: validConfiguration()}}
	g.Spec.Deployment.Helm.OCIRepository = gardencore.OCIRepository{Ref: ptr.To("example.org/chart:1")}
	g.Annotations = map[string]string{"gardener.cloud/operation": "force-redeploy"}
	if got := said(ValidateGardenlet(g)); got != "" {
		t.Error(got)
	}
	elsewhere := g.DeepCopy()
	elsewhere.Namespace, elsewhere.Spec.Deployment.Helm.OCIRepository.Ref = "default", ptr.To("")
	if got := said(ValidateGardenlet(elsewhere)); !strings.Contains(got, "Forbidden metadata.namespace") ||
		!strings.Contains(got, " spec.deployment.helm.ociRepository") {
		t.Error(got)
	}
	other := g.DeepCopy()
	other.Annotations["gardener.cloud/operation"] = "reconcile"
	if got := said(ValidateGardenletUpdate(other, g)); got != "Forbidden metadata.annotations[gardener.cloud/operation]" {
		t.Error(got)
	}
}

func managedSeedSet(change func(*gardenseedmanagement.ManagedSeedSet)) *gardenseedmanagement.ManagedSeedSet {
	labels := metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}
	m := &gardenseedmanagement.ManagedSeedSet{ObjectMeta: meta("set"),
		Spec: gardenseedmanagement.ManagedSeedSetSpec{
			Replicas: ptr.To[int32](1),
			Selector: metav1.LabelSelector{MatchLabels: labels.Labels},
			Template: gardenseedmanagement.ManagedSeedTemplate{ObjectMeta: labels, Spec: managedSeed(nil).Spec},
			ShootTemplate: gardencore.ShootTemplate{
				ObjectMeta: labels, Spec: gardencore.ShootSpec{Provider: gardencore.Provider{Workers: []gardencore.Worker{{}}}}},
		},
		Status: gardenseedmanagement.ManagedSeedSetStatus{Replicas: 1, NextReplicaNumber: 2, CollisionCount: ptr.To[int32](1)},
	}
	m.Spec.Template.Spec.Shoot = nil
	if change != nil {
		change(m)
	}
	return m
}

// TestManagedSeedSet does not check the rules for the shoot template, which belong to the core group.
func TestManagedSeedSet(t *testing.T) {
	type set = gardenseedmanagement.ManagedSeedSet
	for want, change := range map[string]func(*set){
		"":                                      nil,
		"Invalid metadata.namespace":            func(m *set) { m.Namespace = "default" },
		"Invalid spec.replicas":                 func(m *set) { m.Spec.Replicas = ptr.To[int32](-1) },
		"Invalid spec.selector":                 func(m *set) { m.Spec.Selector = metav1.LabelSelector{} },
		"Forbidden spec.template.spec.shoot":    func(m *set) { m.Spec.Template.Spec.Shoot = &gardenseedmanagement.Shoot{} },
		"Invalid spec.template.metadata.labels": func(m *set) { m.Spec.Template.Labels = nil },
		"NotSupported spec.updateStrategy.type": func(m *set) {
			m.Spec.UpdateStrategy = &gardenseedmanagement.UpdateStrategy{Type: ptr.To[gardenseedmanagement.UpdateStrategyType]("x")}
		},
		"Required spec.updateStrategy.type": func(m *set) {
			m.Spec.UpdateStrategy = &gardenseedmanagement.UpdateStrategy{Type: ptr.To[gardenseedmanagement.UpdateStrategyType]("")}
		},
		"Required spec.template.spec.gardenlet.config.seedConfig": func(
			m *set) {
			m.Spec.Template.Spec.Gardenlet.Config = &gardenletv1alpha1.GardenletConfiguration{}
		},
		"Invalid spec.template.spec.gardenlet.config.seedConfig.metadata.labels": func(m *set) {
			c := validConfiguration()
			c.SeedConfig.Labels = nil
			m.Spec.Template.Spec.Gardenlet.Config = c
		},
	} {
		errs := validateManagedSeedSet(managedSeedSet(change), func(*gardencore.ShootTemplate, *field.Path) field.ErrorList { return nil })
		if got := said(errs); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	workerless := managedSeedSet(func(m *set) { m.Spec.ShootTemplate.Spec.Provider.Workers = nil })
	if got := said(ValidateManagedSeedSet(workerless)); !strings.Contains(got, "Invalid spec.shootTemplate.spec.provider.workers") {
		t.Errorf("workerless: %s", got)
	}
	changed := managedSeedSet(func(m *set) {
		m.Spec.Selector.MatchLabels, m.Spec.RevisionHistoryLimit = map[string]string{"a": "b", "c": "d"}, ptr.To[int32](3)
	})
	if got := said(ValidateManagedSeedSetUpdate(changed, managedSeedSet(nil))); !strings.Contains(got, "Invalid spec.selector") ||
		!strings.Contains(got, "Invalid spec.revisionHistoryLimit") {
		t.Errorf("changed: %s", got)
	}
}

func TestManagedSeedSetStatus(t *testing.T) {
	type set = gardenseedmanagement.ManagedSeedSet
	pending := func(name string, reason gardenseedmanagement.PendingReplicaReason) func(*set) {
		return func(m *set) {
			m.Status.PendingReplica = &gardenseedmanagement.PendingReplica{Name: name, Reason: reason}
		}
	}
	for want, change := range map[string]func(*set){
		"":                                   pending("set-0", gardenseedmanagement.ShootReconcilingReason),
		"Invalid status.readyReplicas":       func(m *set) { m.Status.ReadyReplicas = 2 },
		"Invalid status.updatedReplicas":     func(m *set) { m.Status.UpdatedReplicas = -1 },
		"Invalid status.nextReplicaNumber":   func(m *set) { m.Status.NextReplicaNumber = 1 },
		"Invalid status.collisionCount":      func(m *set) { m.Status.CollisionCount = nil },
		"Invalid status.pendingReplica.name": pending("other-0", gardenseedmanagement.ShootReconcilingReason),
		"Invalid status.pendingReplica.name, NotSupported status.pendingReplica.reason": pending("set-99999999999", "x"),
	} {
		if got := said(ValidateManagedSeedSetStatusUpdate(managedSeedSet(change), managedSeedSet(nil))); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
