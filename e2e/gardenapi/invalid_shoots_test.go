package gardenapi

// ---- shoots ----

var invalidShoots = []invalidCase{
	bad("a name with two hyphens in a row", "metadata.name", "metadata.name=a--b"),
	bad("an unknown operation", "metadata.annotations[gardener.cloud/operation]", "metadata.annotations[gardener.cloud/operation]=explode"),
	bad("no region", "spec.region", `spec.region=""`),
	bad("no provider type", "spec.provider.type", `spec.provider.type=""`),
	bad("an unknown purpose", "spec.purpose", "spec.purpose=fun"),
	bad("infrastructure in a project", "spec.purpose", "spec.purpose=infrastructure"),
	bad("an unknown failure tolerance", "spec.controlPlane.highAvailability.failureTolerance.type", "spec.controlPlane.highAvailability.failureTolerance.type=planet"),
	bad("an extension without a type", "spec.extensions[0].type", `spec.extensions[0].type=""`),
	bad("an extension twice", "spec.extensions[1].type", "spec.extensions=[{type: a}, {type: a}]"),
	bad("a resource without a name", "spec.resources[0].name", `spec.resources[0]={name: "", resourceRef: {apiVersion: v1, kind: Secret, name: a}}`),
	bad("a resource without a kind", "spec.resources[0].resourceRef.kind", `spec.resources[0]={name: a, resourceRef: {apiVersion: v1, kind: "", name: a}}`),
	bad("a toleration without a key", "spec.tolerations[0].key", `spec.tolerations[0].key=""`),
	bad("a toleration twice", "spec.tolerations[1]", "spec.tolerations=[{key: a}, {key: a}]"),
	bad("a bad seed selector", "spec.seedSelector.matchExpressions[0].operator", "spec.seedSelector.matchExpressions[0]={key: a, operator: Near}"),
	bad("a bad address for alerts", "spec.monitoring.alerting.emailReceivers[0]", "spec.monitoring.alerting.emailReceivers=[nobody]"),
	bad("add-ons with a Kubernetes that has none", "spec.addons", "spec.purpose=evaluation", "spec.addons.kubernetesDashboard={enabled: true, authenticationMode: none}"),
	bad("a maintenance window that is none", "spec.maintenance.timeWindow.begin/end", "spec.maintenance.timeWindow={begin: noon, end: 220000+0100}"),
	bad("a maintenance window of 5 minutes", "spec.maintenance.timeWindow", "spec.maintenance.timeWindow={begin: 220000+0100, end: 220500+0100}"),
	bad("a maintenance window of 10 hours", "spec.maintenance.timeWindow", "spec.maintenance.timeWindow={begin: 100000+0100, end: 200000+0100}"),
	bad("a hibernation that never starts nor ends", "spec.hibernation.schedules[0].start/end", "spec.hibernation.schedules[0].location=UTC"),
	bad("a hibernation that starts at no time", "spec.hibernation.schedules[0].start", "spec.hibernation.schedules[0].start=noon"),
	bad("a hibernation that ends at no time", "spec.hibernation.schedules[0].end", "spec.hibernation.schedules[0].end=99 * * * *"),
	bad("a hibernation in no place", "spec.hibernation.schedules[0].location", "spec.hibernation.schedules[0]={start: 0 20 * * *, location: Nowhere/Land}"),
	undecodable("spec.provider.workers=many"),
	undecodable("spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize=1.5"),
	undecodable("spec.hibernation.enabled=maybe"),
}

var invalidKubernetes = []invalidCase{
	bad("events kept too long", "spec.kubernetes.kubeAPIServer.eventTTL", "spec.kubernetes.kubeAPIServer.eventTTL=200h"),
	bad("a negative default toleration", "spec.kubernetes.kubeAPIServer.defaultNotReadyTolerationSeconds", "spec.kubernetes.kubeAPIServer.defaultNotReadyTolerationSeconds=-1"),
	bad("another negative default toleration", "spec.kubernetes.kubeAPIServer.defaultUnreachableTolerationSeconds", "spec.kubernetes.kubeAPIServer.defaultUnreachableTolerationSeconds=-1"),
	bad("a negative number of reading requests", "spec.kubernetes.kubeAPIServer.requests.maxNonMutatingInflight", "spec.kubernetes.kubeAPIServer.requests.maxNonMutatingInflight=-1"),
	bad("a negative number of writing requests", "spec.kubernetes.kubeAPIServer.requests.maxMutatingInflight", "spec.kubernetes.kubeAPIServer.requests.maxMutatingInflight=-1"),
	bad("an admission plugin without a name", "spec.kubernetes.kubeAPIServer.admissionPlugins[0].name", `spec.kubernetes.kubeAPIServer.admissionPlugins[0].name=""`),
	bad("an unknown admission plugin", "spec.kubernetes.kubeAPIServer.admissionPlugins[0].name", "spec.kubernetes.kubeAPIServer.admissionPlugins[0].name=Magic"),
	bad("an unknown feature gate", "spec.kubernetes.kubeAPIServer.featureGates.Magic", "spec.kubernetes.kubeAPIServer.featureGates.Magic=true"),
	bad("tokens that live an hour", "spec.kubernetes.kubeAPIServer.serviceAccountConfig.maxTokenExpiration", "spec.kubernetes.kubeAPIServer.serviceAccountConfig.maxTokenExpiration=1h"),
	bad("structured authentication from nowhere", "spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName", `spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName=""`),
	bad("structured authorization from nowhere", "spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName", `spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName=""`),
	bad("nodes with too many addresses", "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize=15"),
	bad("horizontal autoscaling without a pause", "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler.syncPeriod", "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler.syncPeriod=0s"),
	bad("horizontal autoscaling with a negative tolerance", "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler.tolerance", "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler.tolerance=-1"),
	bad("an unknown proxy mode", "spec.kubernetes.kubeProxy.mode", "spec.kubernetes.kubeProxy.mode=UserSpace"),
	bad("an unknown scheduling profile", "spec.kubernetes.kubeScheduler.profile", "spec.kubernetes.kubeScheduler.profile=random"),
	bad("a negative number of pods", "spec.kubernetes.kubelet.maxPods", "spec.kubernetes.kubelet.maxPods=-1"),
	bad("99 processes a pod", "spec.kubernetes.kubelet.podPIDsLimit", "spec.kubernetes.kubelet.podPidsLimit=99"),
	bad("more than all of the disk for images", "spec.kubernetes.kubelet.imageGCHighThresholdPercent", "spec.kubernetes.kubelet.imageGCHighThresholdPercent=101"),
	bad("less than no image pulls", "spec.kubernetes.kubelet.registryPullQPS", "spec.kubernetes.kubelet.registryPullQPS=-1"),
	bad("a single log file", "spec.kubernetes.kubelet.containerLogMaxFiles", "spec.kubernetes.kubelet.containerLogMaxFiles=1"),
	bad("a negative eviction pressure transition", "spec.kubernetes.kubelet.evictionPressureTransitionPeriod", "spec.kubernetes.kubelet.evictionPressureTransitionPeriod=-1s"),
	bad("an unknown expander", "spec.kubernetes.clusterAutoscaler.expander", "spec.kubernetes.clusterAutoscaler.expander=dice"),
	bad("a utilization above one", "spec.kubernetes.clusterAutoscaler.scaleDownUtilizationThreshold", "spec.kubernetes.clusterAutoscaler.scaleDownUtilizationThreshold=1.1"),
	bad("a negative delay after adding", "spec.kubernetes.clusterAutoscaler.scaleDownDelayAfterAdd", "spec.kubernetes.clusterAutoscaler.scaleDownDelayAfterAdd=-1s"),
	bad("a negative time to provision", "spec.kubernetes.clusterAutoscaler.maxNodeProvisionTime", "spec.kubernetes.clusterAutoscaler.maxNodeProvisionTime=-1s"),
	bad("a negative graceful termination", "spec.kubernetes.clusterAutoscaler.maxGracefulTerminationSeconds", "spec.kubernetes.clusterAutoscaler.maxGracefulTerminationSeconds=-1"),
	bad("a negative eviction threshold", "spec.kubernetes.verticalPodAutoscaler.evictAfterOOMThreshold", "spec.kubernetes.verticalPodAutoscaler={enabled: true, evictAfterOOMThreshold: -1m}"),
	bad("a negative updater interval", "spec.kubernetes.verticalPodAutoscaler.updaterInterval", "spec.kubernetes.verticalPodAutoscaler={enabled: true, updaterInterval: -1m}"),
	bad("a negative recommender interval", "spec.kubernetes.verticalPodAutoscaler.recommenderInterval", "spec.kubernetes.verticalPodAutoscaler={enabled: true, recommenderInterval: -1m}"),
}

var invalidNetworking = []invalidCase{
	bad("no type", "spec.networking.type", `spec.networking.type=""`),
	bad("nodes that are no range", "spec.networking.nodes", "spec.networking.nodes=many"),
	bad("pods that are no range", "spec.networking.pods", "spec.networking.pods=10.0.0.0"),
	bad("services that are the pods", "spec.networking.services", "spec.networking.services=@spec.networking.pods"),
	bad("an unknown IP family", "spec.networking.ipFamilies[0]", "spec.networking.ipFamilies=[IPv5]"),
}

var invalidWorkers = []invalidCase{
	bad("a pool without a name", "spec.provider.workers[0].name", `spec.provider.workers[0].name=""`),
	bad("a pool with a name in capitals", "spec.provider.workers[0].name", "spec.provider.workers[0].name=Pool"),
	bad("a pool with a name of 16 characters", "spec.provider.workers[0].name", "spec.provider.workers[0].name=aaaaaaaaaabbbbbb"),
	bad("a pool twice", "spec.provider.workers[1].name", "spec.provider.workers[1]=@spec.provider.workers[0]"),
	bad("no machine type", "spec.provider.workers[0].machine.type", `spec.provider.workers[0].machine.type=""`),
	bad("more at least than at most", "spec.provider.workers[0].maximum", "spec.provider.workers[0].minimum=3"),
	bad("less than no machines", "spec.provider.workers[0].minimum", "spec.provider.workers[0].minimum=-1"),
	bad("neither surge nor unavailability", "spec.provider.workers[0].maxUnavailable", "spec.provider.workers[0].maxSurge=0", "spec.provider.workers[0].maxUnavailable=0"),
	bad("a surge that is no number", "spec.provider.workers[0].maxSurge", "spec.provider.workers[0].maxSurge=all"),
	bad("more unavailable than there are", "spec.provider.workers[0].maxUnavailable", "spec.provider.workers[0].maxUnavailable=110%"),
	bad("a bad label", "spec.provider.workers[0].labels", "spec.provider.workers[0].labels[-bad-]=x"),
	bad("a bad annotation", "spec.provider.workers[0].annotations", "spec.provider.workers[0].annotations[-bad-]=x"),
	bad("a taint without a key", "spec.provider.workers[0].taints[0].key", `spec.provider.workers[0].taints[0]={key: "", effect: NoSchedule}`),
	bad("a taint of unknown effect", "spec.provider.workers[0].taints[0].effect", "spec.provider.workers[0].taints[0]={key: a, effect: Explode}"),
	bad("a volume of no size", "spec.provider.workers[0].volume.size", "spec.provider.workers[0].volume.size=huge"),
	bad("data volumes without a volume", "spec.provider.workers[0].volume", "spec.provider.workers[0].dataVolumes[0]={name: data, size: 10Gi}"),
	bad("an unknown volume for the kubelet", "spec.provider.workers[0].kubeletDataVolumeName", "spec.provider.workers[0].volume={type: standard, size: 10Gi}", "spec.provider.workers[0].dataVolumes[0]={name: data, size: 10Gi}", "spec.provider.workers[0].kubeletDataVolumeName=other"),
	bad("an unknown container runtime interface", "spec.provider.workers[0].cri.name", "spec.provider.workers[0].cri.name=docker"),
	bad("a zone twice", "spec.provider.workers[0].zones[1]", "spec.provider.workers[0].zones=[a, a]"),
	bad("a priority below all", "spec.provider.workers[0].priority", "spec.provider.workers[0].priority=-2"),
	bad("an unknown update strategy", "spec.provider.workers[0].updateStrategy", "spec.provider.workers[0].updateStrategy=Never"),
	bad("a negative utilization", "spec.provider.workers[0].autoscaler.scaleDownUtilizationThreshold", "spec.provider.workers[0].clusterAutoscaler.scaleDownUtilizationThreshold=-0.1"),
	bad("a negative number of evictions", "spec.provider.workers[0].machineControllerManagerSettings.maxEvictRetries", "spec.provider.workers[0].machineControllerManager.maxEvictRetries=-1"),
	bad("a negative number of pods in a pool", "spec.provider.workers[0].kubernetes.kubelet.maxPods", "spec.provider.workers[0].kubernetes.kubelet.maxPods=-1"),
}

var fixedInShoots = []invalidCase{
	fixed("spec.region", "other"),
	fixed("spec.provider.type", "other"),
	fixed("spec.networking.type", "other"),
	fixed("spec.networking.pods", "10.99.0.0/16"),
	fixed("spec.networking.services", "10.99.0.0/16"),
	fixed("spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", "25"),
	keeps("its Kubernetes version at least", "spec.kubernetes.version", "spec.kubernetes.version=1.35.2"),
}

// ---- bastions ----

var invalidBastions = []invalidCase{
	bad("no shoot", "spec.shootRef.name", `spec.shootRef.name=""`),
	bad("no way in", "spec.ingress", "spec.ingress=[]"),
	bad("a way in from no range", "spec.ingress", "spec.ingress[0].ipBlock.cidr=anywhere"),
	bad("an exception outside of the range", "spec.ingress", "spec.ingress[0].ipBlock.except=[192.0.2.0/24]"),
	bad("no key", "spec.sshPublicKey", `spec.sshPublicKey=""`),
	bad("a key that is none", "spec.sshPublicKey", "spec.sshPublicKey=ssh-rsa text"),
	undecodable("spec.ingress=all"),
	keeps("its shoot", "spec.shootRef", "spec.shootRef.name=other"),
	fixed("spec.sshPublicKey", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJUgcwSm5FeKe+qVFwaIUdNYJ2qnN0mcCUL1JBbKKuPq other"),
}

// ---- security ----

var invalidCredentialsBindings = []invalidCase{
	bad("no provider type", "provider.type", `provider.type=""`),
	bad("credentials without a name", "credentialsRef.name", `credentialsRef.name=""`),
	bad("credentials without a kind", "credentialsRef.kind", `credentialsRef.kind=""`),
	bad("credentials without a version", "credentialsRef.apiVersion", `credentialsRef.apiVersion=""`),
	bad("credentials in a ConfigMap", "credentialsRef", "credentialsRef.kind=ConfigMap"),
	bad("a quota without a name", "quotas[0].name", "quotas[0].namespace=garden-bad"),
	undecodable("quotas=none"),
	keeps("its credentials", "credentialsRef", "credentialsRef.name=other"),
	keeps("its provider", "provider", "provider.type=other"),
	keeps("its quotas", "quotas", "quotas[0].name=bad"),
}

var invalidWorkloadIdentities = []invalidCase{
	bad("no audience", "spec.audiences", "spec.audiences=[]"),
	bad("an empty audience", "spec.audiences[0]", `spec.audiences=[""]`),
	bad("an audience twice", "spec.audiences[1]", "spec.audiences=[a, a]"),
	bad("no target system", "spec.targetSystem.type", `spec.targetSystem.type=""`),
	undecodable("spec.audiences=all"),
	fixed("spec.targetSystem.type", "other"),
}

// ---- seed management ----

var invalidManagedSeeds = []invalidCase{
	bad("no shoot", "spec.shoot", "-spec.shoot"),
	bad("a shoot without a name", "spec.shoot.name", `spec.shoot.name=""`),
	bad("a negative number of replicas", "spec.gardenlet.deployment.replicaCount", "spec.gardenlet.deployment.replicaCount=-1"),
	bad("a negative history", "spec.gardenlet.deployment.revisionHistoryLimit", "spec.gardenlet.deployment.revisionHistoryLimit=-1"),
	bad("an unknown pull policy", "spec.gardenlet.deployment.image.pullPolicy", "spec.gardenlet.deployment.image.pullPolicy=Sometimes"),
	bad("an unknown way to bootstrap", "spec.gardenlet.bootstrap", "spec.gardenlet.bootstrap=Magic"),
	undecodable("spec.gardenlet.config={apiVersion: v1, kind: Secret}"),
	undecodable("spec.gardenlet=text"),
	keeps("its shoot", "spec.shoot", "spec.shoot.name=other"),
}

var invalidManagedSeedSets = []invalidCase{
	bad("a negative number of replicas", "spec.replicas", "spec.replicas=-1"),
	bad("a selector of everything", "spec.selector", "spec.selector={}"),
	bad("a bad selector", "spec.selector.matchExpressions[0].operator", "spec.selector.matchExpressions[0]={key: a, operator: Near}"),
	bad("seeds that are not selected", "spec.template.metadata.labels", "spec.template.metadata.labels={name: other}"),
	bad("shoots that are not selected", "spec.shootTemplate.metadata.labels", "spec.shootTemplate.metadata.labels={name: other}"),
	bad("an unknown update strategy", "spec.updateStrategy.type", "spec.updateStrategy.type=Never"),
	bad("a negative partition", "spec.updateStrategy.rollingUpdate.partition", "spec.updateStrategy={type: RollingUpdate, rollingUpdate: {partition: -1}}"),
	bad("a negative history", "spec.revisionHistoryLimit", "spec.revisionHistoryLimit=-1"),
	bad("shoots without a region", "spec.shootTemplate.spec.region", `spec.shootTemplate.spec.region=""`),
	undecodable("spec.replicas=many"),
	keeps("its selector", "spec.selector", "spec.selector.matchLabels.other=label", "spec.template.metadata.labels.other=label", "spec.shootTemplate.metadata.labels.other=label"),
}

var invalidGardenlets = []invalidCase{
	bad("another namespace", "metadata.namespace", "metadata.namespace=garden-bad"),
	bad("a negative number of replicas", "spec.deployment.replicaCount", "spec.deployment.replicaCount=-1"),
	bad("a negative history", "spec.deployment.revisionHistoryLimit", "spec.deployment.revisionHistoryLimit=-1"),
	bad("an unknown pull policy", "spec.deployment.image.pullPolicy", "spec.deployment.image.pullPolicy=Sometimes"),
	bad("a chart from nowhere", "spec.deployment.helm.ociRepository", "spec.deployment.helm.ociRepository={}"),
	bad("a chart with a reference and a tag", "spec.deployment.helm.ociRepository.tag", "spec.deployment.helm.ociRepository.tag=v1"),
	undecodable("spec.config={apiVersion: v1, kind: Secret}"),
	undecodable("spec.deployment=text"),
}
