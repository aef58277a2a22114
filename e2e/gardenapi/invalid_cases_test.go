package gardenapi

import "slices"

// invalidObjects are the cases of every kind, beside those about metadata that all kinds share.
var invalidObjects = map[string][]invalidCase{
	"BackupBucket":           invalidBackupBuckets,
	"BackupEntry":            invalidBackupEntries,
	"CloudProfile":           invalidCloudProfiles,
	"NamespacedCloudProfile": invalidNamespacedCloudProfiles,
	"ControllerDeployment":   invalidControllerDeployments,
	"ControllerRegistration": invalidControllerRegistrations,
	"ControllerInstallation": invalidControllerInstallations,
	"ExposureClass":          invalidExposureClasses,
	"Quota":                  invalidQuotas,
	"SecretBinding":          invalidSecretBindings,
	"InternalSecret":         invalidInternalSecrets,
	"Project":                invalidProjects,
	"Seed":                   invalidSeeds,
	"Shoot":                  slices.Concat(invalidShoots, invalidKubernetes, invalidNetworking, invalidWorkers, fixedInShoots),
	"ShootState":             invalidShootStates,
	"Bastion":                invalidBastions,
	"CredentialsBinding":     invalidCredentialsBindings,
	"WorkloadIdentity":       invalidWorkloadIdentities,
	"ManagedSeed":            invalidManagedSeeds,
	"ManagedSeedSet":         invalidManagedSeedSets,
	"Gardenlet":              invalidGardenlets,
}

// ---- backups ----

var invalidBackupBuckets = []invalidCase{
	bad("no provider type", "spec.provider.type", `spec.provider.type=""`),
	bad("no region", "spec.provider.region", `spec.provider.region=""`),
	bad("neither seed nor shoot", "spec.seedName", "-spec.seedName"),
	bad("an empty seed name", "spec.seedName", `spec.seedName=""`),
	bad("both seed and shoot", "spec.seedName",
		"spec.shootRef={apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: bad, namespace: garden-bad}"),
	bad("a shoot reference to another kind", "spec.shootRef.kind", "-spec.seedName",
		"spec.shootRef={apiVersion: core.gardener.cloud/v1beta1, kind: Seed, name: bad, namespace: garden-bad}"),
	bad("a shoot reference without a name", "spec.shootRef.name", "-spec.seedName",
		"spec.shootRef={apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, namespace: garden-bad}"),
	bad("no credentials", "spec.credentialsRef", "-spec.credentialsRef"),
	bad("credentials in a ConfigMap", "spec.credentialsRef", "spec.credentialsRef.kind=ConfigMap"),
	bad("credentials without a name", "spec.credentialsRef.name", "-spec.credentialsRef.name"),
	bad("credentials without a namespace", "spec.credentialsRef.namespace", "-spec.credentialsRef.namespace"),
	undecodable("spec=text"),
	keeps("its provider", "spec.provider", "spec.provider.type=other"),
	fixed("spec.seedName", "other"),
}

var invalidBackupEntries = []invalidCase{
	bad("no bucket", "spec.bucketName", `spec.bucketName=""`),
	bad("neither seed nor shoot", "spec.seedName", "-spec.seedName"),
	bad("a shoot of another namespace", "spec.shootRef.namespace", "-spec.seedName",
		"spec.shootRef={apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: bad, namespace: other}"),
	bad("a shoot of another version", "spec.shootRef.apiVersion", "-spec.seedName",
		"spec.shootRef={apiVersion: v1, kind: Shoot, name: bad, namespace: garden-bad}"),
	undecodable("spec.bucketName=[1]"),
}

// ---- cloud profiles ----

var invalidCloudProfiles = []invalidCase{
	bad("no type", "spec.type", `spec.type=""`),
	bad("no Kubernetes versions", "spec.kubernetes.versions", "spec.kubernetes.versions=[]"),
	bad("a Kubernetes version that is none", "spec.kubernetes.versions", "spec.kubernetes.versions[0].version=latest"),
	bad("the latest Kubernetes version expires", "spec.kubernetes.versions[].expirationDate",
		"spec.kubernetes.versions[0].expirationDate=2099-01-01T00:00:00Z"),
	bad("a Kubernetes version twice", "spec.kubernetes.versions[1]", "spec.kubernetes.versions[1]=@spec.kubernetes.versions[0]"),
	bad("an unknown classification", "spec.kubernetes.versions[1].classification", "spec.kubernetes.versions[1].classification=fine"),
	bad("no machine images", "spec.machineImages", "spec.machineImages=[]"),
	bad("a machine image without a name", "spec.machineImages[0].name", `spec.machineImages[0].name=""`),
	bad("a machine image without versions", "spec.machineImages[0].versions", "spec.machineImages[0].versions=[]"),
	bad("a machine image twice", "spec.machineImages[1]", "spec.machineImages[1]=@spec.machineImages[0]"),
	bad("an unknown update strategy", "spec.machineImages[0].updateStrategy", "spec.machineImages[0].updateStrategy=never"),
	bad("an unknown container runtime interface", "spec.machineImages[0].versions[0].cri[0].name",
		"spec.machineImages[0].versions[0].cri[0].name=docker"),
	bad("a container runtime interface twice", "spec.machineImages[0].versions[0].cri[1]",
		"spec.machineImages[0].versions[0].cri[1].name=containerd"),
	bad("an unknown architecture of an image", "spec.machineImages[0].versions[0].architectures[0]",
		"spec.machineImages[0].versions[0].architectures[0]=mips"),
	bad("a bad kubelet version constraint", "spec.machineImages[0].versions[0].kubeletVersionConstraint",
		"spec.machineImages[0].versions[0].kubeletVersionConstraint=any"),
	bad("no machine types", "spec.machineTypes", "spec.machineTypes=[]"),
	bad("a machine type without a name", "spec.machineTypes[0].name", `spec.machineTypes[0].name=""`),
	bad("a machine type twice", "spec.machineTypes[1].name", "spec.machineTypes[1]=@spec.machineTypes[0]"),
	bad("less than no CPU", "spec.machineTypes[0].cpu", `spec.machineTypes[0].cpu="-1"`),
	bad("less than no memory", "spec.machineTypes[0].memory", "spec.machineTypes[0].memory=-4Gi"),
	bad("an unknown architecture of a machine", "spec.machineTypes[0].architecture", "spec.machineTypes[0].architecture=mips"),
	bad("storage without a size", "spec.machineTypes[0].storage", "spec.machineTypes[0].storage={class: standard, type: ssd}"),
	bad("a volume type twice", "spec.volumeTypes[1].name", "spec.volumeTypes[1]=@spec.volumeTypes[0]"),
	bad("a volume type without a class", "spec.volumeTypes[0].class", `spec.volumeTypes[0].class=""`),
	bad("no regions", "spec.regions", "spec.regions=[]"),
	bad("a region twice", "spec.regions[1].name", "spec.regions[1]=@spec.regions[0]"),
	bad("a zone without a name", "spec.regions[0].zones[0].name", `spec.regions[0].zones[0].name=""`),
	bad("a zone twice", "spec.regions[0].zones[1].name", "spec.regions[0].zones[1].name=a"),
	bad("a region with a bad label", "spec.regions[0].labels", "spec.regions[0].labels[-bad-]=x"),
	bad("a bastion of no kind", "spec.bastion", "spec.bastion={}"),
	bad("a bastion on an unknown machine", "spec.bastion.machineType.name", "spec.bastion.machineType.name=huge"),
	bad("a bastion with an unknown image", "spec.bastion.machineImage.name", "spec.bastion.machineImage.name=other"),
	bad("no nodes allowed", "spec.limits.maxNodesTotal", "spec.limits.maxNodesTotal=0"),
	bad("a CA bundle that is none", "spec.caBundle", "spec.caBundle=text"),
	bad("a bad seed selector", "spec.seedSelector.matchExpressions[0].operator",
		"spec.seedSelector.matchExpressions[0]={key: a, operator: Near}"),
	bad("capabilities without an architecture", "spec.machineCapabilities.architecture",
		"spec.machineCapabilities[0]={name: hypervisor, values: [gen1]}"),
	bad("a reserved capability", "spec.machineCapabilities[0].name", "spec.machineCapabilities[0]={name: gardener-own, values: [a]}"),
	undecodable("spec.machineTypes[0].cpu=many"),
	undecodable("spec.regions=local"),
}

var invalidNamespacedCloudProfiles = []invalidCase{
	bad("a parent of another kind", "spec.parent.kind", "spec.parent.kind=NamespacedCloudProfile"),
	bad("a Kubernetes version reclassified", "spec.kubernetes.versions[0].classification",
		"spec.kubernetes.versions[0]={version: 1.36.0, classification: supported}"),
	bad("a machine type twice", "spec.machineTypes[1].name", `spec.machineTypes[0]={name: own, cpu: "1", gpu: "0", memory: 1Gi}`,
		"spec.machineTypes[1]=@spec.machineTypes[0]"),
	bad("less than no GPU", "spec.machineTypes[0].gpu", `spec.machineTypes[0]={name: own, cpu: "1", gpu: "-1", memory: 1Gi}`),
	bad("a volume type without a class", "spec.volumeTypes[0].class", "spec.volumeTypes[0].name=own"),
	bad("a CA bundle that is none", "spec.caBundle", "spec.caBundle=text"),
	bad("no nodes allowed", "spec.limits.maxNodesTotal", "spec.limits.maxNodesTotal=-1"),
	keeps("its parent", "spec.parent", "spec.parent.name=other"),
}

// ---- extensions ----

var invalidControllerDeployments = []invalidCase{
	bad("no chart", "helm", "helm={}"),
	bad("a reference and a tag", "helm.ociRepository.tag", "helm.ociRepository.tag=v1"),
	bad("a repository without a tag", "helm.ociRepository", "helm.ociRepository={repository: registry.example.com/chart}"),
	bad("a digest of another kind", "helm.ociRepository.digest",
		"helm.ociRepository={repository: registry.example.com/chart, digest: 'md5:1'}"),
	bad("a resource without a name", "resources[0].name", "resources[0].resourceRef={apiVersion: v1, kind: Secret, name: a}"),
	bad("a resource with a hyphen in its name", "resources[0].name",
		"resources[0]={name: a-b, resourceRef: {apiVersion: v1, kind: Secret, name: a}}"),
	bad("a resource of another kind", "resources[0].resourceRef", "resources[0]={name: a, resourceRef: {apiVersion: v1, kind: Pod, name: a}}"),
	bad("values that refer to no resource", "helm.values", "helm.values={key: '{{ .resources.none.data.key }}'}"),
	bad("values with another template", "helm.values", "helm.values={key: '{{ now }}'}"),
	undecodable("helm=chart"),
}

var invalidControllerRegistrations = []invalidCase{
	bad("a resource without a kind", "spec.resources[0].kind", `spec.resources[0].kind=""`),
	bad("a resource of an unknown kind", "spec.resources[0].kind", "spec.resources[0].kind=Shoot"),
	bad("a resource without a type", "spec.resources[0].type", `spec.resources[0].type=""`),
	bad("a resource twice", "spec.resources[1]", "spec.resources[1]=@spec.resources[0]"),
	bad("automatic enablement of another kind", "spec.resources[0].autoEnable", "spec.resources[0].kind=Worker",
		"spec.resources[0].autoEnable=[shoot]"),
	bad("automatic enablement for an unknown cluster type", "spec.resources[0].autoEnable[0]", "spec.resources[0].autoEnable=[cloud]"),
	bad("automatic enablement without compatibility", "spec.resources[0].autoEnable[0]",
		"spec.resources[0].clusterCompatibility=[shoot]", "spec.resources[0].autoEnable=[seed]"),
	bad("a compatibility twice", "spec.resources[0].clusterCompatibility[1]", "spec.resources[0].clusterCompatibility=[shoot, shoot]"),
	bad("deletion after the workers", "spec.resources[0].lifecycle.delete", "spec.resources[0].lifecycle.delete=AfterWorker"),
	bad("an unknown policy", "spec.deployment.policy", "spec.deployment.policy=Never"),
	bad("a seed selector for what is controlled primarily", "spec.deployment.seedSelector", "spec.deployment.seedSelector={}"),
	bad("two deployments", "spec.deployment.deploymentRefs", "spec.deployment.deploymentRefs[1].name=other"),
	bad("a deployment without a name", "spec.deployment.deploymentRefs[0].name", `spec.deployment.deploymentRefs[0].name=""`),
	undecodable("spec.resources[0]=text"),
	fixed("spec.resources[0].primary", "false"),
}

var invalidControllerInstallations = []invalidCase{
	bad("no registration", "spec.registrationRef.name", "-spec.registrationRef"),
	bad("neither seed nor shoot", "spec.seedRef", "-spec.seedRef"),
	bad("a seed without a name", "spec.seedRef.name", "spec.seedRef={}"),
	bad("a shoot without a namespace", "spec.shootRef.namespace", "spec.shootRef.name=bad"),
	fixed("spec.registrationRef.name", "other"),
	fixed("spec.seedRef.name", "other"),
	fixed("spec.shootRef", "{name: bad, namespace: garden-bad}"),
}

// ---- small ones ----

var invalidExposureClasses = []invalidCase{
	bad("a handler that is no DNS label", "handler", "handler=Bad_Handler"),
	bad("a handler of 35 characters", "handler", "handler=aaaaaaaaaabbbbbbbbbbccccccccccddddd"),
	bad("a toleration without a key", "scheduling.tolerations[0].key", "scheduling.tolerations[0].value=a"),
	bad("a toleration twice", "scheduling.tolerations[1]", "scheduling.tolerations=[{key: a}, {key: a}]"),
	bad("a bad seed selector", "scheduling.seedSelector.matchExpressions[0].operator",
		"scheduling.seedSelector.matchExpressions[0]={key: a, operator: Near}"),
	fixed("handler", "other"),
	keeps("its scheduling", "scheduling", "scheduling.tolerations[0].key=a"),
}

var invalidQuotas = []invalidCase{
	bad("a scope of another kind", "spec.scope", "spec.scope.kind=Shoot"),
	bad("no scope", "spec.scope", "-spec.scope"),
	bad("a lifetime of no days", "spec.clusterLifetimeDays", "spec.clusterLifetimeDays=0"),
	bad("an unknown metric", "spec.metrics[disks]", `spec.metrics.disks="1"`),
	bad("a negative metric", "spec.metrics[cpu]", `spec.metrics.cpu="-1"`),
	undecodable("spec.clusterLifetimeDays=long"),
	keeps("its scope", "spec.scope", "spec.scope={apiVersion: core.gardener.cloud/v1beta1, kind: Project}"),
}

var invalidSecretBindings = []invalidCase{
	bad("no provider", "provider", "-provider"),
	bad("no provider type", "provider.type", `provider.type=""`),
	bad("no secret", "secretRef.name", "secretRef={}"),
	bad("a secret in a bad namespace", "secretRef.namespace", "secretRef.namespace=Bad_Namespace"),
	bad("a quota without a name", "quotas[0].name", "quotas[0].namespace=garden-bad"),
	keeps("its provider", "provider", "provider.type=other"),
	keeps("its secret", "secretRef", "secretRef.name=other"),
	keeps("its quotas", "quotas", "quotas[0].name=bad"),
}

var invalidInternalSecrets = []invalidCase{
	bad("a key with a space", "data[a b]", "data[a b]=eA=="),
	bad("TLS without a key", "data[tls.key]", "type=kubernetes.io/tls", "data[tls.crt]=eA=="),
	bad("SSH without a key", "data[ssh-privatekey]", "type=kubernetes.io/ssh-auth"),
	bad("basic authentication without anything", "data[username]", "type=kubernetes.io/basic-auth"),
	bad("a Docker configuration that is no JSON", "data[.dockerconfigjson]", "type=kubernetes.io/dockerconfigjson",
		"data[.dockerconfigjson]=eA=="),
	bad("a token of no service account", "metadata.annotations[kubernetes.io/service-account.name]",
		"type=kubernetes.io/service-account-token"),
	undecodable("data.key=not base64"),
	fixed("type", "example.com/other"),
}

var invalidShootStates = []invalidCase{
	bad("data without a name", "spec.gardener[0].name", `spec.gardener[0].name=""`),
	bad("an extension without a kind", "spec.extensions[0].kind", "spec.extensions[0].name=a"),
	bad("an extension without a purpose", "spec.extensions[0].purpose", `spec.extensions[0]={kind: Worker, name: a, purpose: ""}`),
	undecodable("spec.gardener=text"),
}

// ---- projects ----

var invalidProjects = []invalidCase{
	bad("a name of 11 characters", "metadata.name", "metadata.name=abcdefghijk", "spec.namespace=garden-other"),
	bad("a name with two hyphens in a row", "metadata.name", "metadata.name=a--b"),
	bad("a namespace without the prefix", "spec.namespace", "spec.namespace=bad"),
	bad("a reserved namespace", "spec.namespace", "spec.namespace=gardener-system-seed-lease"),
	bad("an owner without a name", "spec.owner.name", `spec.owner.name=""`),
	bad("an owner of an unknown kind", "spec.owner.kind", "spec.owner.kind=Robot"),
	bad("an owner of another API group", "spec.owner.apiGroup", "spec.owner.apiGroup=example.com"),
	bad("an empty description", "spec.description", `spec.description=""`),
	bad("a description with markup", "spec.description", "spec.description=<script>"),
	bad("a purpose with markup", "spec.purpose", "spec.purpose=<b>"),
	bad("a member twice", "spec.members[1]", "spec.members[0]={apiGroup: rbac.authorization.k8s.io, kind: User, name: a, role: viewer}",
		"spec.members[1]=@spec.members[0]"),
	bad("a member with an unknown role", "spec.members[0].roles[0]",
		"spec.members[0]={apiGroup: rbac.authorization.k8s.io, kind: User, name: a, role: king}"),
	bad("a service account without a namespace", "spec.members[0].namespace", "spec.members[0]={kind: ServiceAccount, name: a, role: viewer}"),
	bad("a user name of half a service account", "spec.members[0].name",
		"spec.members[0]={apiGroup: rbac.authorization.k8s.io, kind: User, name: 'system:serviceaccount:a', role: viewer}"),
	bad("an extension role of 21 characters", "spec.members[0].roles[0]",
		"spec.members[0]={apiGroup: rbac.authorization.k8s.io, kind: User, name: a, role: 'extension:aaaaaaaaaabbbbbbbbbbc'}"),
	bad("a default toleration that is not allowed", "spec.tolerations.defaults[0]", "spec.tolerations.defaults[0].key=a"),
	bad("an allowed toleration twice", "spec.tolerations.whitelist[1]", "spec.tolerations.whitelist=[{key: a}, {key: a}]"),
	bad("dual approval for another resource", "spec.dualApprovalForDeletion[0].resource", "spec.dualApprovalForDeletion[0].resource=seeds"),
	undecodable("spec.members=all"),
	fixed("spec.namespace", "garden-other"),
	keeps("who created it", "spec.createdBy", "spec.createdBy.name=other"),
	keeps("its owner", "spec.owner", "-spec.owner"),
}

// ---- seeds ----

var invalidSeeds = []invalidCase{
	bad("no provider type", "spec.provider.type", `spec.provider.type=""`),
	bad("no region", "spec.provider.region", `spec.provider.region=""`),
	bad("a zone twice", "spec.provider.zones[1]", "spec.provider.zones=[a, a]"),
	bad("an unknown operation", "metadata.annotations[gardener.cloud/operation]", "metadata.annotations[gardener.cloud/operation]=explode"),
	bad("pods that are no range", "spec.networks.pods", "spec.networks.pods=many"),
	bad("pods within services", "spec.networks.services", "spec.networks.services=@spec.networks.pods"),
	bad("nodes in a reserved range", "spec.networks.nodes", "spec.networks.nodes=242.0.0.0/16"),
	bad("IPv6 pods without the family", "spec.networks.pods", "spec.networks.pods=2001:db8::/64"),
	bad("an unknown IP family", "spec.networks.ipFamilies[0]", "spec.networks.ipFamilies=[IPv5]"),
	bad("defaults for shoots that are no range", "spec.networks.shootDefaults.pods", "spec.networks.shootDefaults.pods=many"),
	bad("backups elsewhere without a region", "spec.backup.region",
		"spec.backup={provider: other, credentialsRef: {apiVersion: v1, kind: Secret, name: backup, namespace: garden}}"),
	bad("backups without credentials", "spec.backup.credentialsRef", "spec.backup.provider=local"),
	bad("a taint without a key", "spec.taints[0].key", `spec.taints[0].key=""`),
	bad("a taint twice", "spec.taints[1]", "spec.taints=[{key: a}, {key: a}]"),
	bad("volumes of less than nothing", "spec.volume.minimumSize", "spec.volume.minimumSize=-1Gi"),
	bad("a volume provider without a purpose", "spec.volume.providers[0].purpose", "spec.volume.providers[0].name=a"),
	bad("no ingress", "spec.ingress", "-spec.ingress"),
	bad("an ingress domain that is none", "spec.ingress.domain", "spec.ingress.domain=Bad_Domain"),
	bad("an unknown ingress controller", "spec.ingress.controller.kind", "spec.ingress.controller.kind=apache"),
	bad("ingress without a DNS provider", "spec.dns.provider", "-spec.dns.provider"),
	bad("a DNS provider without a type", "spec.dns.provider.type", `spec.dns.provider.type=""`),
	bad("no internal domain", "spec.dns.internal", "-spec.dns.internal"),
	bad("an internal domain that is none", "spec.dns.internal.domain", "spec.dns.internal.domain=Bad_Domain"),
	bad("a default domain twice", "spec.dns.defaults[1].domain", "spec.dns.defaults[0]=@spec.dns.internal",
		"spec.dns.defaults[1]=@spec.dns.internal"),
	bad("an extension twice", "spec.extensions[1].type", "spec.extensions=[{type: a}, {type: a}]"),
	bad("a resource without a name", "spec.resources[0].name",
		`spec.resources[0]={name: "", resourceRef: {apiVersion: v1, kind: Secret, name: a}}`),
	bad("zone selection without zones", "spec.settings.zoneSelection", "spec.provider.zones=[]",
		"spec.settings.zoneSelection.mode=Prefer"),
	bad("topology-aware routing in one zone", "spec.settings.topologyAwareRouting.enabled", "spec.settings.topologyAwareRouting.enabled=true"),
	bad("an unknown traffic policy", "spec.settings.loadBalancerServices.externalTrafficPolicy",
		"spec.settings.loadBalancerServices.externalTrafficPolicy=Global"),
	bad("load balancers of an unknown zone", "spec.settings.loadBalancerServices.zones[0].name", "spec.provider.zones=[a, b]",
		"spec.settings.loadBalancerServices.zones[0].name=c"),
	bad("an unknown feature gate of the autoscaler", "spec.settings.verticalPodAutoscaler.featureGates.Magic",
		"spec.settings.verticalPodAutoscaler={enabled: true, featureGates: {Magic: true}}"),
	bad("a reservation of nothing", "spec.settings.excessCapacityReservation.configs[0].resources",
		"spec.settings.excessCapacityReservation={enabled: true, configs: [{resources: {}}]}"),
	undecodable("spec.networks=[]"),
	fixed("spec.networks.pods", "10.99.0.0/16"),
	fixed("spec.networks.services", "10.99.0.0/16"),
	fixed("spec.networks.nodes", "10.99.0.0/16"),
	fixed("spec.ingress.domain", "other.example.com"),
}
