package corevalidation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// kubernetesAnswers returns the errors as "type field", sorted and without duplicates.
func kubernetesAnswers(errs field.ErrorList) []string {
	var answers []string
	for _, err := range errs {
		answers = append(answers, string(err.Type)+" "+err.Field)
	}
	slices.Sort(answers)
	return slices.Compact(answers)
}

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

type server = gardencore.KubeAPIServerConfig
type kubelet = gardencore.KubeletConfig

func gates(name string, value bool) gardencore.KubernetesConfig {
	return gardencore.KubernetesConfig{FeatureGates: map[string]bool{name: value}}
}

func withServer(config server) func(*gardencore.Kubernetes) {
	return func(k *gardencore.Kubernetes) { k.KubeAPIServer = &config }
}

func withPlugins(plugins ...gardencore.AdmissionPlugin) func(*gardencore.Kubernetes) {
	return withServer(server{AdmissionPlugins: plugins})
}

func withKubelet(config kubelet) func(*gardencore.Kubernetes) {
	return func(k *gardencore.Kubernetes) { k.Kubelet = &config }
}

func encrypt(provider gardencore.EncryptionProviderType, resources ...string) func(*gardencore.Kubernetes) {
	return withServer(
		server{EncryptionConfig: &gardencore.EncryptionConfig{Resources: resources, Provider: gardencore.EncryptionProvider{Type: &provider}}})
}

func config(raw string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(raw)} }

var dualStack = &gardencore.Networking{IPFamilies: []gardencore.IPFamily{gardencore.IPFamilyIPv4, gardencore.IPFamilyIPv6}}

type kubernetesCase struct {
	name       string
	version    string // 1.34.1 if empty
	change     func(*gardencore.Kubernetes)
	workerless bool
	networking *gardencore.Networking
	options    kubernetesOptions
	want       []string
}

func checkKubernetes(t *testing.T, cases []kubernetesCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			kubernetes := gardencore.Kubernetes{Version: "1.34.1"}
			if test.version != "" {
				kubernetes.Version = test.version
			}
			test.change(&kubernetes)
			got := kubernetesAnswers(validateKubernetes(kubernetes, test.networking, test.options, test.workerless, nil))
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestValidateKubernetes(t *testing.T) {
	checkKubernetes(t, []kubernetesCase{
		{name: "nothing set", change: func(*gardencore.Kubernetes) {}},
		{name: "no version", change: func(k *gardencore.Kubernetes) { k.Version, k.KubeProxy = "", &gardencore.KubeProxyConfig{} },
			want: []string{"FieldValueRequired version"}},
		{name: "unreadable version", version: "x", change: withServer(server{KubernetesConfig: gates("AllBeta", true)}),
			want: []string{"FieldValueInvalid kubeAPIServer.featureGates.AllBeta", "InternalError kubeAPIServer.admissionPlugins"}},
		{name: "nodes' components without workers", workerless: true, change: func(k *gardencore.Kubernetes) {
			k.KubeScheduler, k.KubeProxy, k.Kubelet = &gardencore.KubeSchedulerConfig{}, &gardencore.KubeProxyConfig{}, &kubelet{}
			k.ClusterAutoscaler, k.VerticalPodAutoscaler = &gardencore.ClusterAutoscaler{}, &gardencore.VerticalPodAutoscaler{}
		}, want: []string{"FieldValueForbidden clusterAutoScaler", "FieldValueForbidden kubeProxy",
			"FieldValueForbidden kubeScheduler", "FieldValueForbidden kubelet", "FieldValueForbidden verticalPodAutoScaler"}},
	})
}

func TestValidateKubeAPIServer(t *testing.T) {
	checkKubernetes(t, []kubernetesCase{
		{name: "feature gate", change: withServer(server{KubernetesConfig: gates("MutatingAdmissionPolicy", true)})},
		{name: "unknown feature gate", change: withServer(server{KubernetesConfig: gates("Foo", true)}),
			want: []string{"FieldValueInvalid kubeAPIServer.featureGates.Foo"}},
		{name: "feature gate of a later version", change: withServer(server{KubernetesConfig: gates("WorkloadWithJob", true)}),
			want: []string{"FieldValueForbidden kubeAPIServer.featureGates.WorkloadWithJob"}},
		{name: "feature gate removed before the oldest supported version", change: withServer(server{KubernetesConfig: gates("KMSv2", true)}),
			want: []string{"FieldValueForbidden kubeAPIServer.featureGates.KMSv2"}},
		{name: "feature gate that Gardener does not know", version: "1.35.0",
			change: withServer(server{KubernetesConfig: gates("StatefulSetSemanticRevisionComparison", true)}),
			want:   []string{"FieldValueInvalid kubeAPIServer.featureGates.StatefulSetSemanticRevisionComparison"}},
		{name: "locked feature gate", change: withServer(server{KubernetesConfig: gates("WinDSR", true)})},
		{name: "locked feature gate with the other value", change: withServer(server{KubernetesConfig: gates("WinDSR", false)}),
			want: []string{"FieldValueForbidden kubeAPIServer.featureGates.WinDSR"}},
		{name: "feature gate before it is locked", version: "1.33.0", change: withServer(server{KubernetesConfig: gates("WinDSR", false)})},

		{name: "APIs", change: withServer(
			server{RuntimeConfig: map[string]bool{"batch/v1": false, "v1": true, "batch/v1/jobs": false, "storage.k8s.io/v1": true}})},
		{name: "APIs that are unknown, too new or needed", change: withServer(server{RuntimeConfig: map[string]bool{
			"a/b/c/d": true, "scheduling.k8s.io/v1alpha2": true, "v1/pods": false, "autoscaling/v2": false, "apps/v1": false}}),
			want: []string{"FieldValueForbidden kubeAPIServer.runtimeConfig[apps/v1]",
				"FieldValueForbidden kubeAPIServer.runtimeConfig[autoscaling/v2]",
				"FieldValueForbidden kubeAPIServer.runtimeConfig[scheduling.k8s.io/v1alpha2]",
				"FieldValueForbidden kubeAPIServer.runtimeConfig[v1/pods]", "FieldValueInvalid kubeAPIServer.runtimeConfig[a/b/c/d]"}},
		{name: "APIs needed for workers only", workerless: true,
			change: withServer(server{RuntimeConfig: map[string]bool{"apps/v1": false, "events.k8s.io/v1": false}}),
			want:   []string{"FieldValueForbidden kubeAPIServer.runtimeConfig[events.k8s.io/v1]"}},

		{name: "admission plugins", change: withPlugins(
			gardencore.AdmissionPlugin{Name: "AlwaysPullImages", Disabled: ptr.To(true)},
			gardencore.AdmissionPlugin{Name: "ImagePolicyWebhook", Config: config("{}"), KubeconfigSecretName: ptr.To("secret")},
			gardencore.AdmissionPlugin{Name: "PodSecurity",
				Config: config(`{"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration","unknown":1}`)})},
		{name: "wrong admission plugins", change: withPlugins(
			gardencore.AdmissionPlugin{Name: "Foo"},
			gardencore.AdmissionPlugin{Name: "JobValidation"},
			gardencore.AdmissionPlugin{Name: "NodeRestriction", Disabled: ptr.To(true), Config: config("{}"),
				KubeconfigSecretName: ptr.To("secret")},
			gardencore.AdmissionPlugin{Name: "PodSecurity", Config: config(`{"apiVersion":"v1","kind":"ConfigMap"}`)},
			gardencore.AdmissionPlugin{}, gardencore.AdmissionPlugin{Name: "Foo"}),
			want: []string{"FieldValueForbidden kubeAPIServer.admissionPlugins[1].name",
				"FieldValueForbidden kubeAPIServer.admissionPlugins[2]", "FieldValueForbidden kubeAPIServer.admissionPlugins[2].config",
				"FieldValueForbidden kubeAPIServer.admissionPlugins[2].kubeconfigSecretName",
				"FieldValueInvalid kubeAPIServer.admissionPlugins[0].name", "FieldValueInvalid kubeAPIServer.admissionPlugins[3].config",
				"FieldValueRequired kubeAPIServer.admissionPlugins[4].name"}},

		{name: "structured authentication and authorization", change: withServer(server{
			KubernetesConfig:         gates("StructuredAuthenticationConfiguration", true),
			StructuredAuthentication: &gardencore.StructuredAuthentication{},
			StructuredAuthorization:  &gardencore.StructuredAuthorization{ConfigMapName: "x"}}),
			want: []string{"FieldValueForbidden kubeAPIServer.structuredAuthentication.configMapName",
				"FieldValueRequired kubeAPIServer.structuredAuthorization.kubeconfigs"}},
		{name: "structured authentication switched off", version: "1.33.0", change: withServer(server{
			KubernetesConfig:         gates("StructuredAuthenticationConfiguration", false),
			StructuredAuthentication: &gardencore.StructuredAuthentication{ConfigMapName: "x"}}),
			want: []string{"FieldValueForbidden kubeAPIServer.structuredAuthentication"}},
		{name: "issuers", change: withServer(server{ServiceAccountConfig: &gardencore.ServiceAccountConfig{
			Issuer: ptr.To("https://a"), AcceptedIssuers: []string{"https://b", "https://a", "https://b", "http://c?x"},
			MaxTokenExpiration: seconds(60)}}),
			want: []string{"FieldValueDuplicate kubeAPIServer.serviceAccountConfig.acceptedIssuers[2]",
				"FieldValueForbidden kubeAPIServer.serviceAccountConfig.maxTokenExpiration",
				"FieldValueInvalid kubeAPIServer.serviceAccountConfig.acceptedIssuers[1]",
				"FieldValueInvalid kubeAPIServer.serviceAccountConfig.acceptedIssuers[3]"}},
		{name: "old accepted issuers", options: kubernetesOptions{keepsAcceptedIssuers: true},
			change: withServer(server{ServiceAccountConfig: &gardencore.ServiceAccountConfig{AcceptedIssuers: []string{"x", "x"}}})},
		{name: "encryption", options: kubernetesOptions{rotatesETCDKey: true}, change: encrypt("aesgcm", "configmaps", "deployments.apps")},
		{name: "wrong encryption", change: encrypt("aesgcm", "secrets", "Foo", "*.apps", "x", "x", "ingresses.extensions"),
			want: []string{"FieldValueDuplicate kubeAPIServer.encryptionConfig.resources[4]",
				"FieldValueForbidden kubeAPIServer.encryptionConfig.provider.type", "FieldValueForbidden kubeAPIServer.encryptionConfig.resources[0]",
				"FieldValueInvalid kubeAPIServer.encryptionConfig.resources[1]", "FieldValueInvalid kubeAPIServer.encryptionConfig.resources[2]",
				"FieldValueInvalid kubeAPIServer.encryptionConfig.resources[5]"}},
		{name: "the rest of kube-apiserver", version: "1.35.0", change: withServer(server{
			EnableAnonymousAuthentication: ptr.To(true),
			APIAudiences:                  []string{"a", "a", "b,c"},
			EventTTL:                      seconds(25 * 3600),
			TLSMinVersion:                 ptr.To("VersionTLS11"),
			Requests:                      &gardencore.APIServerRequests{MaxMutatingInflight: ptr.To[int32](2501)},
			WatchCacheSizes: &gardencore.WatchCacheSizes{
				Default: ptr.To[int32](1), Resources: []gardencore.ResourceWatchCacheSize{{APIGroup: ptr.To("A")}}},
			Autoscaling: &gardencore.ControlPlaneAutoscaling{
				MinAllowed: corev1.ResourceList{"cpu": resource.MustParse("10m"), "foo": resource.MustParse("1")}},
		}), want: []string{"FieldValueDuplicate kubeAPIServer.apiAudiences[1]",
			"FieldValueForbidden kubeAPIServer.enableAnonymousAuthentication", "FieldValueForbidden kubeAPIServer.watchCacheSizes.default",
			"FieldValueInvalid kubeAPIServer.apiAudiences[2]", "FieldValueInvalid kubeAPIServer.autoscaling.minAllowed.cpu",
			"FieldValueInvalid kubeAPIServer.eventTTL", "FieldValueInvalid kubeAPIServer.requests.maxMutatingInflight",
			"FieldValueInvalid kubeAPIServer.watchCacheSizes.resources[0].apiGroup",
			"FieldValueNotSupported kubeAPIServer.autoscaling.minAllowed.foo", "FieldValueNotSupported kubeAPIServer.tlsMinVersion",
			"FieldValueRequired kubeAPIServer.watchCacheSizes.resources[0].resource"}},
	})
}

func TestValidateControlPlane(t *testing.T) {
	checkKubernetes(t, []kubernetesCase{
		{name: "node ranges of IPv4", networking: &gardencore.Networking{}, change: func(k *gardencore.Kubernetes) {
			k.KubeControllerManager = &gardencore.KubeControllerManagerConfig{NodeCIDRMaskSize: ptr.To[int32](29),
				NodeCIDRMaskSizeIPv6: ptr.To[int32](64), PodEvictionTimeout: seconds(1), NodeMonitorGracePeriod: seconds(0)}
		}, want: []string{"FieldValueForbidden kubeControllerManager.nodeCIDRMaskSizeIPv6",
			"FieldValueForbidden kubeControllerManager.podEvictionTimeout",
			"FieldValueInvalid kubeControllerManager.nodeCIDRMaskSize", "FieldValueInvalid kubeControllerManager.nodeMonitorGracePeriod"}},
		{name: "node ranges of both", networking: dualStack, change: func(k *gardencore.Kubernetes) {
			k.KubeControllerManager = &gardencore.KubeControllerManagerConfig{NodeCIDRMaskSize: ptr.To[int32](24),
				NodeCIDRMaskSizeIPv6: ptr.To[int32](63)}
		}, want: []string{"FieldValueInvalid kubeControllerManager.nodeCIDRMaskSizeIPv6"}},
		{name: "scheduler and proxy", change: func(k *gardencore.Kubernetes) {
			k.KubeScheduler = &gardencore.KubeSchedulerConfig{Profile: ptr.To(gardencore.SchedulingProfile("x")), KubeMaxPDVols: ptr.To("0")}
			k.KubeProxy = &gardencore.KubeProxyConfig{}
		}, want: []string{"FieldValueInvalid kubeScheduler.kubeMaxPDVols", "FieldValueNotSupported kubeScheduler.profile",
			"FieldValueRequired kubeProxy.mode"}},
		{name: "nftables without its feature gate", version: "1.32.0", change: func(k *gardencore.Kubernetes) {
			k.KubeProxy = &gardencore.KubeProxyConfig{Mode: ptr.To(gardencore.ProxyModeNFTables),
				KubernetesConfig: gates("NFTablesProxyMode", false)}
		}, want: []string{"FieldValueInvalid kubeProxy.mode"}},

		{name: "cluster-autoscaler", change: func(k *gardencore.Kubernetes) {
			k.ClusterAutoscaler = &gardencore.ClusterAutoscaler{ScanInterval: seconds(-1), ScaleDownUtilizationThreshold: ptr.To(1.1),
				Expander:      ptr.To(gardencore.ExpanderMode("random,x")),
				StartupTaints: []string{"a", "a", "-"}, IgnoreTaints: []string{}, MaxEmptyBulkDelete: ptr.To[int32](1),
				MaxScaleDownParallelism: ptr.To[int32](2)}
		}, want: []string{"FieldValueDuplicate clusterAutoscaler.startupTaints[1]",
			"FieldValueForbidden clusterAutoscaler.ignoreTaints.IgnoreTaints", "FieldValueForbidden clusterAutoscaler.maxEmptyBulkDelete",
			"FieldValueInvalid clusterAutoscaler.maxEmptyBulkDelete", "FieldValueInvalid clusterAutoscaler.scaleDownUtilizationThreshold",
			"FieldValueInvalid clusterAutoscaler.scanInterval",
			"FieldValueInvalid clusterAutoscaler.startupTaints[2]", "FieldValueNotSupported clusterAutoscaler.expander"}},
		{name: "vertical-pod-autoscaler", change: func(k *gardencore.Kubernetes) {
			k.VerticalPodAutoscaler = &gardencore.VerticalPodAutoscaler{EvictionTolerance: ptr.To(1.0),
				TargetCPUPercentile: ptr.To(1.0), FeatureGates: map[string]bool{"InPlace": true, "x": true, "y": true},
				MaxAllowed:                   corev1.ResourceList{"memory": resource.MustParse("-1"), "pods": resource.MustParse("1")},
				RecommenderUpdateWorkerCount: ptr.To[int64](0)}
		}, want: []string{"FieldValueInvalid verticalPodAutoscaler.evictionTolerance",
			"FieldValueInvalid verticalPodAutoscaler.featureGates.x", "FieldValueInvalid verticalPodAutoscaler.maxAllowed.memory",
			"FieldValueInvalid verticalPodAutoscaler.recommenderUpdateWorkerCount", "FieldValueNotSupported verticalPodAutoscaler.maxAllowed.pods"}},
		{name: "etcd", change: func(k *gardencore.Kubernetes) {
			k.ETCD = &gardencore.ETCD{Main: &gardencore.ETCDConfig{Autoscaling: &gardencore.ControlPlaneAutoscaling{}},
				Events: &gardencore.ETCDConfig{
					Autoscaling: &gardencore.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{"memory": resource.MustParse("59M")}}}}
		}, want: []string{"FieldValueInvalid etcd.events.autoscaling.minAllowed.memory", "FieldValueRequired etcd.main.autoscaling.minAllowed"}},
	})
}

func TestValidateKubelet(t *testing.T) {
	checkKubernetes(t, []kubernetesCase{
		{name: "kubelet", version: "1.35.0", change: withKubelet(kubelet{
			KubernetesConfig: gates("NodeSwap", true), MemorySwap: &gardencore.MemorySwapConfiguration{SwapBehavior: ptr.To(gardencore.LimitedSwap)},
			EvictionHard: &gardencore.KubeletConfigEviction{MemoryAvailable: ptr.To("5%"), NodeFSAvailable: ptr.To("1Gi"),
				NodeFSInodesFree: ptr.To("not looked at")},
			ImageMinimumGCAge: &metav1.Duration{Duration: -time.Millisecond}, MaxParallelImagePulls: ptr.To[int32](2),
			ImagePullCredentialsVerificationPolicy: ptr.To(gardencore.NeverVerifyAllowlistedImages),
			PreloadedImagesVerificationAllowlist:   []string{"registry.io/*", "registry.io/image"}})},
		{name: "wrong kubelet", change: withKubelet(kubelet{
			CPUManagerPolicy: ptr.To("x"), MaxPods: ptr.To[int32](-1), PodPIDsLimit: ptr.To[int64](99),
			ContainerLogMaxFiles: ptr.To[int32](1), ContainerLogMaxSize: ptr.To(resource.MustParse("-1")),
			EvictionSoft:                &gardencore.KubeletConfigEviction{MemoryAvailable: ptr.To("101%"), ImageFSAvailable: ptr.To("-1")},
			EvictionSoftGracePeriod:     &gardencore.KubeletConfigEvictionSoftGracePeriod{MemoryAvailable: seconds(-1)},
			EvictionMinimumReclaim:      &gardencore.KubeletConfigEvictionMinimumReclaim{NodeFSAvailable: ptr.To(resource.MustParse("-1"))},
			KubeReserved:                &gardencore.KubeletConfigReserved{CPU: ptr.To(resource.MustParse("-1"))},
			ImageMaximumGCAge:           seconds(-1),
			ImageGCHighThresholdPercent: ptr.To[int32](50), ImageGCLowThresholdPercent: ptr.To[int32](50),
			SerializeImagePulls: ptr.To(true), MaxParallelImagePulls: ptr.To[int32](2),
			StreamingConnectionIdleTimeout: seconds(29), FailSwapOn: ptr.To(true),
			MemorySwap:                             &gardencore.MemorySwapConfiguration{SwapBehavior: ptr.To(gardencore.SwapBehavior("x"))},
			ImagePullCredentialsVerificationPolicy: ptr.To(gardencore.AlwaysVerify), PreloadedImagesVerificationAllowlist: []string{}}),
			want: []string{"FieldValueForbidden kubelet.imageGCLowThresholdPercent",
				"FieldValueForbidden kubelet.imagePullCredentialsVerificationPolicy", "FieldValueForbidden kubelet.maxParallelImagePulls",
				"FieldValueForbidden kubelet.memorySwap", "FieldValueForbidden kubelet.preloadedImagesVerificationAllowlist",
				"FieldValueInvalid kubelet.containerLogMaxFiles", "FieldValueInvalid kubelet.containerLogMaxSize",
				"FieldValueInvalid kubelet.evictionMinimumReclaim.nodefsAvailable",
				"FieldValueInvalid kubelet.evictionSoft.imagefsAvailable", "FieldValueInvalid kubelet.evictionSoft.memoryAvailable",
				"FieldValueInvalid kubelet.evictionSoftGracePeriod.memoryAvailable", "FieldValueInvalid kubelet.imageMaximumGCAge",
				"FieldValueInvalid kubelet.kubeReserved.cpu", "FieldValueInvalid kubelet.maxPods",
				"FieldValueInvalid kubelet.podPIDsLimit", "FieldValueInvalid kubelet.streamingConnectionIdleTimeout",
				"FieldValueNotSupported kubelet.cpuManagerPolicy", "FieldValueNotSupported kubelet.memorySwap.swapBehavior"}},
	})
}

func TestCheckImagePattern(t *testing.T) {
	for pattern, valid := range map[string]bool{
		"registry.io/*": true, "registry.io/image": true, "image": true,
		"": false, "/*": false, "*": false, "a*/*": false, " image": false, "image:tag": false, "Image": false,
		"image@sha256:0123456789012345678901234567890123456789012345678901234567890123": false,
	} {
		if err := checkImagePattern(pattern); (err == nil) != valid {
			t.Errorf("%q: got %v", pattern, err)
		}
	}
}

func TestValidateClusterAutoscalerOptionsForWorker(t *testing.T) {
	got := kubernetesAnswers(ValidateClusterAutoscalerOptionsForWorker(&gardencore.ClusterAutoscalerOptions{
		ScaleDownUtilizationThreshold: ptr.To(1.0), ScaleDownGpuUtilizationThreshold: ptr.To(-0.1),
		ScaleDownUnneededTime: seconds(0), MaxNodeProvisionTime: seconds(-1),
	}, field.NewPath("autoscaler")))
	want := []string{"FieldValueInvalid autoscaler.maxNodeProvisionTime", "FieldValueInvalid autoscaler.scaleDownGpuUtilizationThreshold"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValidateKubernetesUpdate(t *testing.T) {
	spec := func(version string, mask, maskIPv6 *int32) *gardencore.ShootSpec {
		return &gardencore.ShootSpec{Kubernetes: gardencore.Kubernetes{Version: version,
			KubeControllerManager: &gardencore.KubeControllerManagerConfig{NodeCIDRMaskSize: mask, NodeCIDRMaskSizeIPv6: maskIPv6}}}
	}
	for _, test := range []struct {
		name       string
		newS, oldS *gardencore.ShootSpec
		want       []string
	}{
		{"next minor, IPv6 added", spec("1.34.0", ptr.To[int32](24), ptr.To[int32](64)), spec("1.33.0", ptr.To[int32](24), nil), nil},
		{"minor skipped, masks changed", spec("1.35.0", nil, ptr.To[int32](65)), spec("1.33.0", ptr.To[int32](24), ptr.To[int32](64)),
			[]string{"FieldValueForbidden version", "FieldValueInvalid kubeControllerManager.nodeCIDRMaskSize",
				"FieldValueInvalid kubeControllerManager.nodeCIDRMaskSizeIPv6"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := kubernetesAnswers(validateKubernetesUpdate(test.newS, test.oldS, nil)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestValidateEncryptionConfigUpdate(t *testing.T) {
	shoot := func(provider gardencore.EncryptionProviderType, resources ...string) *gardencore.Shoot {
		shoot := &gardencore.Shoot{}
		shoot.Spec.Kubernetes.KubeAPIServer = &gardencore.KubeAPIServerConfig{
			EncryptionConfig: &gardencore.EncryptionConfig{Resources: resources, Provider: gardencore.EncryptionProvider{Type: &provider}}}
		return shoot
	}
	rolledOut := gardencore.ShootStatus{
		Credentials: &gardencore.ShootCredentials{
			EncryptionAtRest: &gardencore.EncryptionAtRest{Resources: []string{"configmaps"},
				Provider: gardencore.EncryptionProviderStatus{Type: "aescbc"}},
			Rotation: &gardencore.ShootCredentialsRotation{
				ETCDEncryptionKey: &gardencore.ETCDEncryptionKeyRotation{Phase: gardencore.RotationCompleted}},
		},
		LastOperation: &gardencore.LastOperation{Type: gardencore.LastOperationTypeReconcile},
	}
	for _, test := range []struct {
		name   string
		newS   *gardencore.Shoot
		change func(*gardencore.Shoot)
		want   []string
	}{
		{"resources", shoot("aescbc"), func(*gardencore.Shoot) {}, nil},
		{"provider", shoot("secretbox", "configmaps"), func(*gardencore.Shoot) {}, nil},
		{"both", shoot("secretbox"), func(*gardencore.Shoot) {}, []string{"FieldValueForbidden provider.type"}},
		{"nothing while rolling out", shoot("aescbc", "configmaps"), func(s *gardencore.Shoot) { s.Status = gardencore.ShootStatus{} }, nil},
		{"resources while rolling out", shoot("aescbc"), func(s *gardencore.Shoot) { s.Status.Credentials.EncryptionAtRest = nil },
			[]string{"FieldValueForbidden resources"}},
		{"resources in hibernation", shoot("aescbc"), func(s *gardencore.
			Shoot) {
			s.Spec.Hibernation = &gardencore.Hibernation{Enabled: ptr.To(true)}
		}, []string{"FieldValueForbidden resources"}},
		{"provider in rotation", shoot("secretbox", "configmaps"), func(s *gardencore.Shoot) {
			s.Status.Credentials.Rotation.ETCDEncryptionKey.Phase = gardencore.RotationPreparing
		}, []string{"FieldValueForbidden provider.type"}},
		{"provider before creation", shoot("secretbox", "configmaps"), func(s *gardencore.Shoot) { s.Status.LastOperation = nil },
			[]string{"FieldValueForbidden provider.type"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.newS.Status = *rolledOut.DeepCopy()
			test.change(test.newS)
			if got := kubernetesAnswers(
				validateEncryptionConfigUpdate(test.newS, shoot("aescbc", "configmaps"), nil)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
