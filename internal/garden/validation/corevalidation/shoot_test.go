package corevalidation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

type shoot = gardencore.Shoot

func examplePool(name string) gardencore.Worker {
	return gardencore.Worker{
		Name: name, Minimum: 1, Maximum: 3, MaxSurge: ptr.To(intstr.FromInt32(1)),
		Machine: gardencore.Machine{Type: "large", Image: &gardencore.ShootMachineImage{Name: "linux", Version: "1.2.3"}},
		CRI:     &gardencore.CRI{Name: gardencore.CRINameContainerD},
		Volume:  &gardencore.Volume{VolumeSize: "20Gi"},
	}
}

func exampleShoot() *shoot {
	return &shoot{ObjectMeta: objectMeta("roses", "garden-dev"), Spec: gardencore.ShootSpec{
		CloudProfile:           &gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "cloud"},
		CredentialsBindingName: ptr.To("binding"),
		Region:                 "eu",
		Purpose:                ptr.To(gardencore.ShootPurposeEvaluation),
		Provider:               gardencore.Provider{Type: "cloud", Workers: []gardencore.Worker{examplePool("a"), examplePool("b")}},
		Kubernetes:             gardencore.Kubernetes{Version: "1.34.1"},
		Networking: &gardencore.Networking{Type: ptr.To("calico"), Nodes: ptr.To("10.250.0.0/16"),
			Pods: ptr.To("10.96.0.0/13"), Services: ptr.To("10.104.0.0/13"), IPFamilies: []gardencore.IPFamily{gardencore.IPFamilyIPv4}},
		DNS: &gardencore.DNS{Domain: ptr.To("roses.example.com")},
	}}
}

func workerlessShoot() *shoot {
	s := exampleShoot()
	s.Spec.Provider.Workers, s.Spec.CredentialsBindingName, s.Spec.Networking = nil, nil, nil
	return s
}

func selfHostedShoot() *shoot {
	s := exampleShoot()
	s.Namespace = "garden"
	pool := &s.Spec.Provider.Workers[0]
	pool.Minimum, pool.Maximum, pool.ControlPlane = 1, 1, &gardencore.WorkerControlPlane{}
	return s
}

// pinnedTo pins the control plane of a shoot to zones, with high availability if it has to tolerate failures.
func pinnedTo(tolerates gardencore.FailureToleranceType, zones ...string) func(*shoot) {
	return func(s *shoot) {
		s.Spec.ControlPlane = &gardencore.ControlPlane{Zones: zones}
		if tolerates != "" {
			s.Spec.ControlPlane.HighAvailability = &gardencore.HighAvailability{
				FailureTolerance: gardencore.FailureTolerance{Type: tolerates}}
		}
	}
}

func TestValidateShoot(t *testing.T) {
	runMutations(t, exampleShoot, ValidateShoot, []mutation[shoot]{
		{"nothing", func(*shoot) {}, nil},
		{"name", func(s *shoot) { s.Name = "a--b" }, []string{"Invalid metadata.name"}},
		{"region", func(s *shoot) { s.Spec.Region = "" }, []string{"Required spec.region"}},
		{"no cloud profile", func(s *shoot) { s.Spec.CloudProfile = nil }, []string{"Required spec.cloudProfile.name"}},
		{"kind of cloud profile", func(s *shoot) { s.Spec.CloudProfile.Kind = "x" }, []string{"NotSupported spec.cloudProfile.kind"}},
		{"old cloud profile name", func(s *shoot) { s.Spec.CloudProfileName = ptr.To("cloud") }, []string{"Forbidden spec.cloudProfileName"}},
		{"no binding", func(s *shoot) { s.Spec.CredentialsBindingName = nil }, []string{"Required spec.secretBindingName"}},
		{"both bindings", func(s *shoot) { s.Spec.SecretBindingName = ptr.To("b") },
			[]string{"Forbidden spec.secretBindingName", "Forbidden spec.secretBindingName"}},
		{"purpose", func(s *shoot) { s.Spec.Purpose = ptr.To(gardencore.ShootPurposeInfrastructure) }, []string{"NotSupported spec.purpose"}},
		{"purpose in garden", func(s *shoot) {
			s.Namespace, s.Spec.Purpose = "garden", ptr.To(gardencore.ShootPurposeInfrastructure)
		}, nil},
		{"seed name", func(s *shoot) { s.Spec.SeedName = ptr.To("") }, []string{"Invalid spec.seedName"}},
		{"failure tolerance", func(s *shoot) {
			s.Spec.ControlPlane = &gardencore.ControlPlane{
				HighAvailability: &gardencore.HighAvailability{FailureTolerance: gardencore.FailureTolerance{Type: "x"}}}
		}, []string{"NotSupported spec.controlPlane.highAvailability.failureTolerance.type"}},
		{"pinned to a zone", pinnedTo("", "a"), nil},
		{"pinned to two zones", pinnedTo("node", "a", "b"), []string{"Invalid spec.controlPlane.zones"}},
		{"pinned to a zone twice", pinnedTo("", "a", "a"), []string{"Duplicate spec.controlPlane.zones[1]"}},
		{"pinned to three zones", pinnedTo("zone", "a", "b", "c"), nil},
		{"pinned to two zones, one twice", pinnedTo("zone", "a", "b", "a"),
			[]string{"Duplicate spec.controlPlane.zones[2]", "Invalid spec.controlPlane.zones"}},
		{"exposure class, scheduler", func(s *shoot) { s.Spec.ExposureClassName, s.Spec.SchedulerName = ptr.To("A"), ptr.To("B") },
			[]string{"Invalid spec.exposureClassName", "Invalid spec.schedulerName"}},
		{"extensions", func(s *shoot) { s.Spec.Extensions = []gardencore.Extension{{Type: "a"}, {Type: "a"}, {}} },
			[]string{"Duplicate spec.extensions[1].type", "Required spec.extensions[2].type"}},
		{"networks", func(s *shoot) { s.Spec.Networking.Services = ptr.To("10.104.0.1/13") }, []string{"Invalid spec.networking.services"}},
		{"no networking", func(s *shoot) { s.Spec.Networking = nil }, []string{"Required spec.networking"}},
		{"maintenance", func(s *shoot) {
			s.Spec.Maintenance = &gardencore.Maintenance{TimeWindow: &gardencore.MaintenanceTimeWindow{Begin: "220000+0100", End: "220100+0100"}}
		}, []string{"Invalid spec.maintenance.timeWindow"}},
		{"hibernation", func(s *shoot) {
			s.Spec.Hibernation = &gardencore.Hibernation{
				Schedules: []gardencore.HibernationSchedule{{Start: ptr.To("x"), Location: ptr.To("Nowhere")}, {}}}
		}, []string{"Invalid spec.hibernation.schedules[0].start", "Invalid spec.hibernation.schedules[0].location",
			"Required spec.hibernation.schedules[1].start/end"}},
		{"alerts", func(s *shoot) {
			s.Spec.Monitoring = &gardencore.Monitoring{Alerting: &gardencore.Alerting{EmailReceivers: []string{"x"}}}
		}, []string{"Invalid spec.monitoring.alerting.emailReceivers[0]"}},
		{"CoreDNS", func(s *shoot) {
			s.Spec.SystemComponents = &gardencore.SystemComponents{
				CoreDNS: &gardencore.CoreDNS{Autoscaling: &gardencore.CoreDNSAutoscaling{Mode: "x"}}}
		}, []string{"NotSupported spec.systemComponents.coreDNS.autoscaling.mode"}},
	})
	runMutations(t, workerlessShoot, ValidateShoot, []mutation[shoot]{
		{"workerless", func(*shoot) {}, nil},
		{"workerless with what needs workers", func(s *shoot) {
			s.Spec.CredentialsBindingName = ptr.To("b")
			s.Spec.Provider.InfrastructureConfig, s.Spec.Provider.ControlPlaneConfig = &runtime.RawExtension{}, &runtime.RawExtension{}
			s.Spec.Provider.WorkersSettings, s.Spec.SystemComponents = &gardencore.WorkersSettings{}, &gardencore.SystemComponents{}
			s.Spec.Networking = &gardencore.Networking{Type: ptr.To("x"), Pods: ptr.To("10.0.0.0/8")}
		}, []string{"Forbidden spec.credentialsBindingName", "Forbidden spec.provider.infrastructureConfig",
			"Forbidden spec.provider.controlPlaneConfig",
			"Forbidden spec.provider.workersSettings", "Forbidden spec.systemComponents", "Forbidden spec.networking.type",
			"Forbidden spec.networking.pods"}},
	})
	runMutations(t, selfHostedShoot, ValidateShoot, []mutation[shoot]{
		{"self-hosted", func(*shoot) {}, nil},
		{"self-hosted without credentials", func(s *shoot) { s.Spec.CredentialsBindingName = nil }, nil},
		{"self-hosted with a seed, elsewhere", func(s *shoot) { s.Namespace, s.Spec.SeedName = "garden-dev", ptr.To("seed") },
			[]string{"Invalid metadata.namespace", "Invalid spec.seedName"}},
		{"two control planes", func(s *shoot) { s.Spec.Provider.Workers[1].ControlPlane = &gardencore.WorkerControlPlane{} },
			[]string{"Invalid spec.provider.workers[1].controlPlane"}},
		{"self-hosted does not hibernate", func(s *shoot) { s.Spec.Hibernation = &gardencore.Hibernation{} },
			[]string{"Forbidden spec.hibernation"}},
	})
}

func TestValidateDNSOfShoot(t *testing.T) {
	providers := func(list ...gardencore.DNSProvider) func(*shoot) {
		return func(s *shoot) { s.Spec.DNS.Providers = list }
	}
	runMutations(t, exampleShoot, ValidateShoot, []mutation[shoot]{
		{"domain", func(s *shoot) { s.Spec.DNS.Domain = ptr.To("a..b") }, []string{"Invalid spec.dns.domain"}},
		{"provider", providers(gardencore.DNSProvider{}), []string{"Required spec.dns.providers[0].credentialsRef"}},
		{"two primaries", providers(
			gardencore.DNSProvider{Type: ptr.To("a"), Primary: ptr.To(true), SecretName: ptr.To("x")},
			gardencore.DNSProvider{Type: ptr.To("b"), Primary: ptr.To(true), SecretName: ptr.To("x")},
		), []string{"Forbidden spec.dns.providers[0].secretName", "Forbidden spec.dns.providers[1].primary",
			"Forbidden spec.dns.providers[1].secretName"}},
	})
}

func TestValidateWorkersOfShoot(t *testing.T) {
	pool := func(change func(*gardencore.Worker)) func(*shoot) {
		return func(s *shoot) { change(&s.Spec.Provider.Workers[0]) }
	}
	type w = *gardencore.Worker
	const path = "spec.provider.workers[0]"
	runMutations(t, exampleShoot, ValidateShoot, []mutation[shoot]{
		{"names", func(s *shoot) { s.Spec.Provider.Workers[0].Name, s.Spec.Provider.Workers[1].Name = "a.b", "a.b" },
			[]string{"Invalid " + path + ".name", "Invalid spec.provider.workers[1].name", "Duplicate spec.provider.workers[1].name"}},
		{"long name", pool(func(w w) { w.Name = "a234567890123456" }), []string{"TooLong " + path + ".name"}},
		{"machine", pool(func(w w) { w.Machine = gardencore.Machine{Architecture: ptr.To("x")} }),
			[]string{"Required " + path + ".machine.type", "Required " + path + ".machine.image", "NotSupported " + path + ".machine.architecture"}},
		{"image version", pool(func(w w) { w.Machine.Image.Version = "" }), []string{"Required " + path + ".machine.image.version"}},
		{"size", pool(func(w w) { w.Minimum, w.Maximum = -1, -2 }),
			[]string{"Invalid " + path + ".minimum", "Invalid " + path + ".maximum", "Forbidden " + path + ".maximum"}},
		{"no surge", pool(func(w w) { w.MaxSurge = ptr.To(intstr.FromString("0%")) }), []string{"Invalid " + path + ".maxUnavailable"}},
		{"labels and taints", pool(func(w w) {
			w.Labels = map[string]string{"?": ""}
			w.Taints = []corev1.Taint{{Key: "a", Effect: "x"}, {Key: "a", Effect: "x"}, {Key: "b"}}
		}), []string{"Invalid " + path + ".labels", "NotSupported " + path + ".taints[0].effect",
			"NotSupported " + path + ".taints[1].effect", "Duplicate " + path + ".taints[1]", "Required " + path + ".taints[2].effect"}},
		{"volumes", pool(func(w w) {
			w.Volume.VolumeSize = "1"
			w.DataVolumes = []gardencore.DataVolume{{Name: "a", VolumeSize: "1Gi"}, {Name: "a", VolumeSize: "x"}, {VolumeSize: "1Gi"}}
			w.KubeletDataVolumeName = ptr.To("b")
		}), []string{"Invalid " + path + ".volume.size", "Duplicate " + path + ".dataVolumes[1].name", "Invalid " + path +
			".dataVolumes[1].size", "Required " + path + ".dataVolumes[2].name", "Invalid " + path + ".kubeletDataVolumeName"}},
		{"data volumes alone", pool(func(w w) { w.Volume, w.DataVolumes = nil, []gardencore.DataVolume{{Name: "a", VolumeSize: "1Gi"}} }),
			[]string{"Required " + path + ".volume"}},
		{"container runtime", pool(func(w w) {
			w.CRI = &gardencore.CRI{Name: "docker", ContainerRuntimes: []gardencore.ContainerRuntime{{}, {Type: "a"}, {Type: "a"}}}
		}), []string{"NotSupported " + path + ".cri.name", "Required " + path + ".cri.containerruntimes[0].type",
			"Duplicate " + path + ".cri.containerruntimes[2].type"}},
		{"newer Kubernetes", pool(func(w w) { w.Kubernetes = &gardencore.WorkerKubernetes{Version: ptr.To("1.35.0")} }),
			[]string{"Forbidden " + path + ".kubernetes.version"}},
		{"too old Kubernetes", pool(func(w w) { w.Kubernetes = &gardencore.WorkerKubernetes{Version: ptr.To("1.30.0")} }),
			[]string{"Forbidden " + path + ".kubernetes.version"}},
		{"update strategy", pool(func(w w) { w.UpdateStrategy = ptr.To(gardencore.MachineUpdateStrategy("x")) }),
			[]string{"NotSupported " + path + ".updateStrategy"}},
		{"manual updates in place", pool(func(w w) { w.UpdateStrategy = ptr.To(gardencore.ManualInPlaceUpdate) }),
			[]string{"Invalid " + path + ".maxSurge"}},
		{"no place for system components", func(s *shoot) {
			s.Spec.Provider.Workers = s.Spec.Provider.Workers[:1]
			s.Spec.Provider.Workers[0].Maximum, s.Spec.Provider.Workers[0].Minimum = 0, 0
		},
			[]string{"Forbidden spec.provider.workers"}},
		{"more zones than machines", func(s *shoot) { s.Spec.Provider.Workers[0].Zones = []string{"1", "2", "3", "4"} },
			[]string{"Forbidden " + path + ".maximum"}},
		{"priority", pool(func(w w) { w.Priority = ptr.To[int32](-2) }), []string{"Invalid " + path + ".priority"}},
		{"sysctls", pool(func(w w) { w.Sysctls = map[string]string{"a b": ""} }),
			[]string{"Invalid " + path + ".sysctls.a b", "Required " + path + ".sysctls.a b"}},
	})
}

func TestNewShoot(t *testing.T) {
	wantErrors(t, ValidateFinalizersOnCreation([]string{"a", "gardener", "gardener.cloud/reference-protection"}, field.NewPath("f")),
		"Forbidden f[1]", "Forbidden f[2]")
	s := exampleShoot()
	s.Spec.Provider.Workers[1].UpdateStrategy = ptr.To(gardencore.AutoInPlaceUpdate)
	wantErrors(t, ValidateInPlaceUpdateStrategyOnCreation(s), "Invalid spec.provider.workers[1].updateStrategy")
	featuregatetesting.SetFeatureGateDuringTest(t, FeatureGate, InPlaceNodeUpdates, true)
	wantErrors(t, ValidateInPlaceUpdateStrategyOnCreation(s))
}

func TestForceDeletion(t *testing.T) {
	const key = "metadata.annotations[confirmation.gardener.cloud/force-deletion]"
	forced, plain := exampleShoot(), exampleShoot()
	forced.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": "true"}
	wantErrors(t, ValidateForceDeletion(forced, nil), "Forbidden "+key, "Forbidden "+key)
	wantErrors(t, ValidateForceDeletion(plain, forced), "Forbidden "+key)
	wantErrors(t, ValidateForceDeletion(forced, forced))
	forced.DeletionTimestamp = ptr.To(metav1.Now())
	forced.Status.LastErrors = []gardencore.LastError{{Codes: []gardencore.ErrorCode{gardencore.ErrorInfraDependencies}}}
	wantErrors(t, ValidateForceDeletion(forced, plain))
}

func TestValidateShootStatusUpdate(t *testing.T) {
	old := gardencore.ShootStatus{UID: "a", TechnicalID: "shoot--dev--x", ClusterIdentity: ptr.To("c")}
	wantErrors(t, ValidateShootStatusUpdate(old, gardencore.ShootStatus{}))
	wantErrors(t, ValidateShootStatusUpdate(gardencore.ShootStatus{}, old), "Invalid status.uid",
		"Invalid status.technicalID", "Invalid status.clusterIdentity")
	wantErrors(t, ValidateShootStatusUpdate(gardencore.ShootStatus{
		AdvertisedAddresses: []gardencore.ShootAdvertisedAddress{{URL: "x"}, {Name: "a", URL: "http://a"},
			{Name: "a", URL: "https://a"}, {Name: "b", URL: "https://a:1"}},
		Networking: &gardencore.NetworkingStatus{Pods: []string{"x"}, EgressCIDRs: []string{"10.0.0.1/8"}},
	}, gardencore.ShootStatus{}),
		"Required status.advertisedAddresses[0].name", "Invalid status.advertisedAddresses[1].url",
		"Duplicate status.advertisedAddresses[2].name",
		"Invalid status.networking.pods[0]", "Invalid status.networking.egressCIDRs[0]")
	for _, id := range []string{"../../x", "-x", "shoot--dev--x\n", "shoot--a\nb--x"} {
		wantErrors(t, ValidateShootStatusUpdate(gardencore.ShootStatus{TechnicalID: id}, gardencore.ShootStatus{}),
			"Invalid status.technicalID")
	}
}
