package kubecontrollers

import (
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/nodeipam"
	"k8s.io/kubernetes/pkg/controller/nodeipam/ipam"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/controller/volume/vacprotection"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

const (
	// schedulerName is the name of the scheduler, schedulerUser its user, as in any cluster.
	schedulerName = "kube-scheduler"
	schedulerUser = "system:kube-scheduler"

	// The values below are the defaults of kube-controller-manager.
	maxEndpointsPerSlice  = 100
	maxEndpointsPerSubset = 1000
	daemonBackoff         = time.Second
	daemonBackoffMax      = 15 * time.Minute
	nodeMaskIPv4          = 24
	nodeMaskIPv6          = 64
)

// workloads are the controllers that start with the first object of one of their resources.
var workloads = []definition{
	{names.DeploymentController, "deployment-controller", 0, apps("deployments"), newDeployments},
	{names.ReplicaSetController, "replicaset-controller", 5, apps("replicasets"), newReplicaSets},
	{names.ReplicationControllerController, "replication-controller", 5, core("replicationcontrollers"), newReplicationControllers},
	{names.StatefulSetController, "statefulset-controller", 5, apps("statefulsets"), newStatefulSets},
	{names.DaemonSetController, "daemon-set-controller", 5, apps("daemonsets"), newDaemonSets},
	{names.JobController, "job-controller", 5, batch("jobs"), newJobs},
	{names.CronJobController, "cronjob-controller", 5, batch("cronjobs"), newCronJobs},
	{names.TTLAfterFinishedController, "ttl-after-finished-controller", 5, batch("jobs"), newTTLAfterFinished},
	{names.DisruptionController, "disruption-controller", 0, of("policy", "poddisruptionbudgets"), newDisruption},
	{names.EndpointSliceController, "endpointslice-controller", 5, core("services"), newEndpointSlices},
	{"service-lb-controller", "service-controller", 1, core("services"), newLoadBalancers},
	{names.EndpointsController, "endpoint-controller", 5, core("services"), newEndpoints},
	{names.EndpointSliceMirroringController, "endpointslicemirroring-controller", 5, core("endpoints"), newEndpointSliceMirroring},
	{names.HorizontalPodAutoscalerController, "horizontal-pod-autoscaler", 0,
		of("autoscaling", "horizontalpodautoscalers"), newHorizontalPodAutoscalers},
	{names.PersistentVolumeBinderController, "persistent-volume-binder", 0,
		core("persistentvolumeclaims", "persistentvolumes"), newVolumeBinder},
	{names.PersistentVolumeClaimProtectionController, "pvc-protection-controller", 1, core("persistentvolumeclaims"), newPVCProtection},
	{names.PersistentVolumeProtectionController, "pv-protection-controller", 1, core("persistentvolumes"), newPVProtection},
	{names.VolumeAttributesClassProtectionController, "volumeattributesclass-protection-controller", 1,
		of("storage.k8s.io", "volumeattributesclasses"), newVACProtection},
	{names.TaintEvictionController, "node-controller", 0, core("pods"), newTaintEviction},
	{names.PodGarbageCollectorController, "pod-garbage-collector", 0, core("pods"), newPodGC},
	{names.NodeLifecycleController, "node-controller", 0, core("nodes"), newNodeLifecycle},
	{names.NodeIpamController, "node-controller", 0, core("nodes"), newNodeIPAM},
	{schedulerName, "", 0, core("pods"), newScheduler},
}

// ignored has objects that clusters have from the start, and for which no controller has to start: the Service of the API server
// selects no Pods.
var ignored = map[schema.GroupResource]string{
	{Resource: "services"}: "default/kubernetes", {Resource: "endpoints"}: "default/kubernetes",
}

func core(resources ...string) []schema.GroupResource { return of("", resources...) }
func apps(resource string) []schema.GroupResource     { return of("apps", resource) }
func batch(resource string) []schema.GroupResource    { return of("batch", resource) }

func of(group string, resources ...string) (all []schema.GroupResource) {
	for _, resource := range resources {
		all = append(all, schema.GroupResource{Group: group, Resource: resource})
	}
	return all
}

// awaitWorkloads queues each workload controller once one of its resources has an object.
func (c *Controllers) awaitWorkloads() {
	c.wanted = make(chan definition, len(workloads))
	if !c.cfg.Workloads {
		return
	}
	for _, w := range workloads {
		if !Selected(c.cfg.Select, w.name) {
			continue
		}
		want := sync.OnceFunc(func() { c.wanted <- w })
		for _, resource := range w.resources {
			if c.cfg.Idle == nil || !c.cfg.Idle(resource, ignored[resource], want) {
				want()
			}
		}
	}
}

// runWorkloads runs the queued workload controllers until the context ends.
func (c *Controllers) runWorkloads(ctx context.Context, running *sync.WaitGroup) {
	log := klog.FromContext(ctx).WithName("kubecontrollers")
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-c.wanted:
			run, err := w.create(ctx, c)
			switch {
			case ctx.Err() != nil && err != nil:
				return
			case err != nil:
				log.Error(err, "Cannot start a controller", "controller", w.name)
				continue
			}
			running.Go(func() { run(ctx) })
			startFactory(ctx, c.informers.all)
		}
	}
}

// newDeployments returns the Deployment controller. It ignores Deployments that the configured selector excludes: other
// controllers reconcile them.
func newDeployments(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	own := informers.NewSharedInformerFactoryWithOptions(c.shared, resync, informers.WithTransform(ctrlcache.TransformStripManagedFields()),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = c.cfg.DeploymentSelector }))
	all := c.informers.all
	d, err := deployment.NewDeploymentController(ctx, hold(h, own.Apps().V1().Deployments()),
		hold(h, all.Apps().V1().ReplicaSets()), hold(h, all.Core().V1().Pods()), client)
	if err != nil {
		return nil, err
	}
	return runFunc(func(ctx context.Context) {
		startFactory(ctx, own)
		d.Run(ctx, 5) // until the context ends
		own.Shutdown()
	}), nil
}

func newReplicaSets(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	return replicaset.NewReplicaSetController(ctx, hold(h, all.Apps().V1().ReplicaSets()), hold(h, all.Core().V1().Pods()),
		client, replicaset.BurstReplicas), nil
}

func newReplicationControllers(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all.Core().V1()
	return replication.NewReplicationManager(ctx, hold(h, all.Pods()), hold(h, all.ReplicationControllers()),
		client, replication.BurstReplicas), nil
}

func newStatefulSets(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	return statefulset.NewStatefulSetController(ctx, hold(h, all.Core().V1().Pods()), hold(h, all.Apps().V1().StatefulSets()),
		hold(h, all.Core().V1().PersistentVolumeClaims()), hold(h, all.Apps().V1().ControllerRevisions()), client), nil
}

func newDaemonSets(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	return daemon.NewDaemonSetsController(ctx, hold(h, all.Apps().V1().DaemonSets()), hold(h, all.Apps().V1().ControllerRevisions()),
		hold(h, all.Core().V1().Pods()), hold(h, all.Core().V1().Nodes()), client, flowcontrol.NewBackOff(daemonBackoff, daemonBackoffMax))
}

func newJobs(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	// The last arguments, for Workloads and PodGroups, belong to a feature that is off by default.
	return job.NewController(ctx, client, hold(h, all.Core().V1().Pods()), hold(h, all.Batch().V1().Jobs()), nil, nil)
}

func newCronJobs(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all.Batch().V1()
	return cronjob.NewControllerV2(ctx, hold(h, all.Jobs()), hold(h, all.CronJobs()), client)
}

func newTTLAfterFinished(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	return ttlafterfinished.New(ctx, hold(h, c.informers.all.Batch().V1().Jobs()), client), nil
}

func newDisruption(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	config, err := c.cfg.ClientConfig("disruption-controller", serviceAccountUser+"disruption-controller", serviceAccountGroups...)
	if err != nil {
		return nil, err
	}
	scales, err := newScales(c, client, config)
	if err != nil {
		return nil, err
	}
	all := c.informers.all
	d := disruption.NewDisruptionController(ctx, hold(h, all.Core().V1().Pods()),
		hold(h, all.Policy().V1().PodDisruptionBudgets()), hold(h, all.Core().V1().ReplicationControllers()),
		hold(h, all.Apps().V1().ReplicaSets()), hold(h, all.Apps().V1().Deployments()), hold(h, all.Apps().V1().StatefulSets()),
		client, c.mapper, scales, client.Discovery())
	return runFunc(d.Run), nil
}

func newEndpointSlices(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	return endpointslice.NewController(ctx, hold(h, all.Core().V1().Pods()), hold(h, all.Core().V1().Services()),
		hold(h, all.Core().V1().Nodes()),
		hold(h, all.Discovery().V1().EndpointSlices()), maxEndpointsPerSlice, client, 0), nil
}

func newEndpoints(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all.Core().V1()
	return endpoint.NewEndpointController(ctx, hold(h, all.Pods()), hold(h, all.Services()), hold(h, all.Endpoints()), client, 0), nil
}

func newEndpointSliceMirroring(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	return endpointslicemirroring.NewController(ctx, hold(h, all.Core().V1().Endpoints()), hold(h, all.Discovery().V1().EndpointSlices()),
		hold(h, all.Core().V1().Services()), maxEndpointsPerSubset, client, 0), nil
}

// The protection controllers remove the finalizers that the API server's admission adds to volumes, claims and classes.
// Without these controllers, the objects could not be deleted.
func newPVCProtection(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all.Core().V1()
	return pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), hold(h, all.PersistentVolumeClaims()),
		hold(h, all.Pods()), client)
}

func newPVProtection(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	volumes := hold(h, c.informers.all.Core().V1().PersistentVolumes())
	return pvprotection.NewPVProtectionController(klog.FromContext(ctx), volumes, client), nil
}

func newVACProtection(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	return vacprotection.NewVACProtectionController(klog.FromContext(ctx), client, hold(h, all.Core().V1().PersistentVolumeClaims()),
		hold(h, all.Core().V1().PersistentVolumes()), hold(h, all.Storage().V1().VolumeAttributesClasses()))
}

func newTaintEviction(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all.Core().V1()
	return runnerOf(tainteviction.New(ctx, client, hold(h, all.Pods()), hold(h, all.Nodes()), names.TaintEvictionController))
}

// newNodeIPAM returns the controller that assigns each Node a range of the Pod network. It does nothing if the network
// is unknown or too small.
func newNodeIPAM(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	pods, mask := c.cfg.PodCIDR, cmp.Or(c.cfg.NodeMask, nodeMaskIPv4)
	if c.cfg.NodeMask == 0 && pods.IsValid() && pods.Addr().Is6() {
		mask = nodeMaskIPv6
	}
	if !pods.IsValid() || pods.Bits() > mask {
		return together(), nil
	}
	cidr := &net.IPNet{IP: pods.Masked().Addr().AsSlice(), Mask: net.CIDRMask(pods.Bits(), pods.Addr().BitLen())}
	return runnerOf(nodeipam.NewNodeIpamController(ctx, hold(h, c.informers.all.Core().V1().Nodes()), nil, client,
		[]*net.IPNet{cidr}, nil, nil, []int{mask}, ipam.RangeAllocatorType))
}

// newScheduler returns the scheduler. It has its own informers: those of Pods leave out Pods that have ended.
func newScheduler(ctx context.Context, _ *Controllers, client *client, _ *handlers) (runner, error) {
	own := scheduler.NewInformerFactory(client, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	s, err := scheduler.New(ctx, client, own, nil, profile.NewRecorderFactory(broadcaster))
	if err != nil {
		broadcaster.Shutdown()
		return nil, err
	}
	return runFunc(func(ctx context.Context) {
		defer own.Shutdown()
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot record the events of the scheduler")
		}
		startFactory(ctx, own)
		own.WaitForCacheSync(ctx.Done())
		if s.WaitForHandlersSync(ctx) == nil {
			s.Run(ctx)
		}
	}), nil
}
