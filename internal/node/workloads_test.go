package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/remotecommand"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/host/hosttest"
	"github.com/gardenlite/gardenlite/internal/node/kubelet"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

const namespace = metav1.NamespaceDefault

// podNetwork has a range of 256 addresses for each of up to 256 nodes.
var podNetwork = netip.MustParsePrefix("100.96.0.0/16")

// TestWorkloads runs workloads on simulated nodes, with Kubernetes' own controllers and scheduler.
func TestWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	s := startShoot(t)
	s.allow("any")
	for i := range 3 {
		s.addNode(fmt.Sprintf("node-%d", i), netip.AddrFrom4([4]byte{10, 250, 0, byte(i)}))
	}
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error { // otherwise all Pods would be on the first Node
		nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return !isReady(&n) || len(n.Spec.Taints) > 0 })
		if len(ready) != 3 {
			return fmt.Errorf("%d of 3 Nodes are ready", len(ready))
		}
		return nil
	})
	for name, test := range map[string]func(*testing.T, kubernetes.Interface){
		"deployment": testDeployment, "stateful set": testStatefulSet, "daemon set": testDaemonSet, "job": testJob, "cron job": testCronJob,
		"eviction": testEviction, "service": testService, "deadline": testDeadline, "logs": s.testLogs,
		"metrics": testMetrics, "stages": s.testStages, "volumes": testVolumes, "autoscaler": testAutoscaler,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s.client)
		})
	}
}

func (s *shoot) dialNode(_ context.Context, address string) (net.Conn, error) {
	listener, ok := s.network.Load(address)
	if !ok {
		return nil, fmt.Errorf("there is no listener at %s", address)
	}
	return listener.(*memnet.Listener).Dial(netip.AddrPort{})
}

// addNode starts the kubelet of a machine, with a certificate, until the test ends.
func (s *shoot) addNode(name string, address netip.Addr) {
	s.t.Helper()
	cert, key, err := s.server.PKI().Issue("system:node:"+name, []string{"system:nodes"}, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	config, err := json.Marshal(node.KubeletConfig{
		APIServer: s.server.URL(), CA: string(s.server.PKI().CAPEM()), ClientCA: string(s.server.PKI().CAPEM()), KubernetesVersion: "1.36.4",
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	machine, h := hosttest.New(name, clock.RealClock{})
	h.Addresses = []netip.Addr{address}
	h.Listen = func(port uint16) (net.Listener, error) {
		listener := memnet.Listen(netip.AddrPortFrom(address, port))
		s.network.Store(netip.AddrPortFrom(address, port).String(), listener)
		return listener, nil
	}
	for path, data := range map[string][]byte{node.PathKubeletConfig: config, node.PathKubeletClient: append(cert, key...)} {
		if err := machine.Files.WriteFile(path, data, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() {
		if err := kubelet.Run(ctx, h, nil); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(func() { cancel(); runs.Wait() })
}

func labelled(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}
}

func selectorOf(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func templateOf(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: labelled(name), Spec: corev1.PodSpec{
		InitContainers:                []corev1.Container{{Name: "init", Image: "busybox"}},
		Containers:                    []corev1.Container{{Name: "web", Image: "nginx", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
		TerminationGracePeriodSeconds: ptr.To[int64](30),
	}}
}

func createDeployment(t *testing.T, c kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	_, err := c.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: labelled(name), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selectorOf(name), Template: templateOf(name)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitForDeployment(t, c, name, replicas)
}

// waitForDeployment waits until a rollout is complete.
func waitForDeployment(t *testing.T, c kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		d, err := c.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || s.AvailableReplicas != replicas ||
			s.UpdatedReplicas != replicas || s.Replicas != replicas {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

func podsOf(t *testing.T, c kubernetes.Interface, name string) []corev1.Pod {
	t.Helper()
	pods, err := c.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func testDeployment(t *testing.T, c kubernetes.Interface) {
	createDeployment(t, c, "web", 3)
	nodes, addresses := map[string]bool{}, map[string]bool{}
	for _, pod := range podsOf(t, c, "web") {
		nodes[pod.Spec.NodeName], addresses[pod.Status.PodIP] = true, true
		n, err := c.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r := netip.MustParsePrefix(n.Spec.PodCIDR); !podNetwork.Overlaps(r) || !r.Contains(netip.MustParseAddr(pod.Status.PodIP)) {
			t.Errorf("the Pod %s has the address %s, its Node the range %s", pod.Name, pod.Status.PodIP, n.Spec.PodCIDR)
		}
		init, web := pod.Status.InitContainerStatuses[0], pod.Status.ContainerStatuses[0]
		if init.State.Terminated == nil || init.State.Terminated.ExitCode != 0 || web.State.Running == nil || !web.Ready {
			t.Errorf("the containers of Pod %s: %+v, %+v", pod.Name, init, web)
		}
	}
	if len(nodes) != 3 || len(addresses) != 3 {
		t.Errorf("Pods are on the nodes %v with the addresses %v", nodes, addresses)
	}
	before := podsOf(t, c, "web")
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:2"}]}}}}`)
	if _, err := c.AppsV1().Deployments(namespace).Patch(t.Context(), "web", "application/strategic-merge-patch+json",
		patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForDeployment(t, c, "web", 3)
	testutil.EventuallyTrue(t, "the Pods of before are deleted", func() bool {
		for _, pod := range before {
			if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return false
			}
		}
		return true
	})
	if err := c.AppsV1().Deployments(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "no Pods without their Deployment", func() bool { return len(podsOf(t, c, "web")) == 0 })
}

func testStatefulSet(t *testing.T, c kubernetes.Interface) {
	_, err := c.AppsV1().StatefulSets(namespace).Create(
		t.Context(), &appsv1.StatefulSet{ObjectMeta: labelled("db"), Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), Selector: selectorOf("db"), Template: templateOf("db"), ServiceName: "db",
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "three ready Pods", func() bool {
		s, err := c.AppsV1().StatefulSets(namespace).Get(t.Context(), "db", metav1.GetOptions{})
		return err == nil && s.Status.ReadyReplicas == 3
	})
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// testVolumes has claims of a StatefulSet, which name no class, bound to volumes that go with the claims.
func testVolumes(t *testing.T, c kubernetes.Interface) {
	template := templateOf("store")
	template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
		},
	}}
	if _, err := c.AppsV1().StatefulSets(namespace).Create(
		t.Context(), &appsv1.StatefulSet{ObjectMeta: labelled("store"), Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2), Selector: selectorOf("store"), Template: template, ServiceName: "store",
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
		}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "two ready Pods", func() bool {
		s, err := c.AppsV1().StatefulSets(namespace).Get(t.Context(), "store", metav1.GetOptions{})
		return err == nil && s.Status.ReadyReplicas == 2
	})
	claims, volumes := c.CoreV1().PersistentVolumeClaims(namespace), c.CoreV1().PersistentVolumes()
	for _, name := range []string{"data-store-0", "data-store-1"} {
		claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		volume, err := volumes.Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if class := ptr.Deref(claim.Spec.StorageClassName, ""); class != "default" || volume.Spec.StorageClassName != class {
			t.Errorf("%s is of the class %q, its volume of %q", name, class, volume.Spec.StorageClassName)
		}
		if size := claim.Status.Capacity[corev1.ResourceStorage]; claim.Status.Phase != corev1.ClaimBound || size.String() != "10Gi" {
			t.Errorf("%s is %s, with %s", name, claim.Status.Phase, size.String())
		}
	}
	if err := c.AppsV1().StatefulSets(namespace).Delete(t.Context(), "store", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data-store-0", "data-store-1"} {
		if err := claims.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	testutil.EventuallyTrue(t, "no volumes without their claims", func() bool {
		all, err := volumes.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(all.Items) == 0
	})
}

// testAutoscaler scales a Deployment whose Pods use all the memory that they request, where half of it is the target.
func testAutoscaler(t *testing.T, c kubernetes.Interface) {
	template := templateOf("scaled")
	template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	if _, err := c.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: labelled("scaled"), Spec: appsv1.DeploymentSpec{Selector: selectorOf("scaled"), Template: template},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: labelled("scaled"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "scaled"},
			MinReplicas:    ptr.To[int32](1), MaxReplicas: 3,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceMemory,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50)},
			}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "three replicas", func() bool {
		d, err := c.AppsV1().Deployments(namespace).Get(t.Context(), "scaled", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == 3
	})
}

func testDaemonSet(t *testing.T, c kubernetes.Interface) {
	_, err := c.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: labelled("agent"), Spec: appsv1.DaemonSetSpec{Selector: selectorOf("agent"), Template: templateOf("agent")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "a ready Pod on each node", func() bool {
		d, err := c.AppsV1().DaemonSets(namespace).Get(t.Context(), "agent", metav1.GetOptions{})
		return err == nil && d.Status.NumberReady >= 3 && d.Status.NumberReady == d.Status.DesiredNumberScheduled
	})
}

func jobSpec(name string) batchv1.JobSpec {
	template := templateOf(name)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobSpec{Completions: ptr.To[int32](3), Parallelism: ptr.To[int32](2), Template: template}
}

func testJob(t *testing.T, c kubernetes.Interface) {
	spec := jobSpec("import")
	spec.TTLSecondsAfterFinished = ptr.To[int32](1)
	job, err := c.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: labelled("import"), Spec: spec},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.BatchV1().Jobs(namespace).Watch(
		t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=import", ResourceVersion: job.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	complete := false
	for event := range w.ResultChan() {
		if job, ok := event.Object.(*batchv1.Job); ok && job.Status.Succeeded == 3 {
			complete = true
		}
		if event.Type == "DELETED" { // TTL
			break
		}
	}
	if !complete {
		t.Error("the Job was deleted before it was complete")
	}
}

// testCronJob checks that a Job is created at once for a scheduled time that was missed.
func testCronJob(t *testing.T, c kubernetes.Interface) {
	cron, err := c.BatchV1().CronJobs(namespace).Create(
		t.Context(), &batchv1.CronJob{ObjectMeta: labelled("hourly"), Spec: batchv1.CronJobSpec{
			Schedule: "0 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec("hourly")},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cron.Status.LastScheduleTime = ptr.To(metav1.NewTime(time.Now().Add(-2 * time.Hour)))
	if _, err := c.BatchV1().CronJobs(namespace).UpdateStatus(t.Context(), cron, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		jobs, err := c.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, job := range jobs.Items {
			if owner := metav1.GetControllerOf(&job); owner != nil && owner.Name == "hourly" && job.Status.Succeeded == 3 {
				return nil
			}
		}
		return errors.New("no Job of it has succeeded")
	})
}

// testEviction checks that a PodDisruptionBudget prevents evictions while it allows no disruption.
func testEviction(t *testing.T, c kubernetes.Interface) {
	createDeployment(t, c, "guarded", 2)
	_, err := c.PolicyV1().PodDisruptionBudgets(namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: labelled("guarded"),
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2)), Selector: selectorOf("guarded")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "the budget knows the Pods", func() bool {
		b, err := c.PolicyV1().PodDisruptionBudgets(namespace).Get(t.Context(), "guarded", metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 2
	})
	pod := podsOf(t, c, "guarded")[0]
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}
	if err := c.CoreV1().Pods(namespace).EvictV1(t.Context(), eviction); !apierrors.IsTooManyRequests(err) {
		t.Errorf("evicted in spite of its budget: %v", err)
	}
	if _, err := c.AppsV1().Deployments(namespace).Patch(t.Context(), "guarded", "application/merge-patch+json",
		[]byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForDeployment(t, c, "guarded", 3)
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error { return c.CoreV1().Pods(namespace).EvictV1(ctx, eviction) })
	waitForDeployment(t, c, "guarded", 3)
}

func testService(t *testing.T, c kubernetes.Interface) {
	_, err := c.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{ObjectMeta: labelled("shop"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 80}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	createDeployment(t, c, "shop", 2)
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		slices, err := c.DiscoveryV1().EndpointSlices(namespace).List(
			ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=shop"})
		if err != nil {
			return err
		}
		ready := 0
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, false) {
					ready++
				}
			}
		}
		if ready != 2 {
			return fmt.Errorf("%d endpoints are ready", ready)
		}
		return nil
	})
}

func testDeadline(t *testing.T, c kubernetes.Interface) {
	template := templateOf("short")
	template.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
	if _, err := c.CoreV1().Pods(namespace).Create(
		t.Context(), &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "a Pod that failed for its deadline", func() bool {
		pod, err := c.CoreV1().Pods(namespace).Get(t.Context(), "short", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "DeadlineExceeded"
	})
}

// testLogs reaches kubelets through the API server: the logs of a simulated container are empty and end with its Pod,
// and exec is refused because the container has no program.
func (s *shoot) testLogs(t *testing.T, c kubernetes.Interface) {
	createDeployment(t, c, "quiet", 1)
	pod := podsOf(t, c, "quiet")[0]
	pods := c.CoreV1().Pods(namespace)
	if logs, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: "web"}).DoRaw(t.Context()); err != nil || len(logs) > 0 {
		t.Errorf("the logs are %q, %v", logs, err)
	}
	stream, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: "web", Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if err := c.AppsV1().Deployments(namespace).Delete(t.Context(), "quiet", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if logs, err := io.ReadAll(stream); err != nil || len(logs) > 0 {
		t.Errorf("the logs are %q, and end with %v", logs, err)
	}
	createDeployment(t, c, "closed", 1)
	pod = podsOf(t, c, "closed")[0]
	config, err := s.server.ClientConfig("admin", "admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	request := c.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		Param("command", "true").Param("container", "web").Param("stdout", "true")
	executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, request.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}); err == nil ||
		!strings.Contains(err.Error(), "simulated") {
		t.Errorf("exec: %v", err)
	}
}

// testMetrics checks that the usage of a simulated container is its requests, and that the usage of a Node is that of
// its Pods.
func testMetrics(t *testing.T, c kubernetes.Interface) {
	template := templateOf("used")
	// The scheduler assumes the same requests for Pods without requests: the other tests expect their Pods to be
	// spread.
	template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("200Mi"),
	}
	if _, err := c.CoreV1().Pods(namespace).Create(
		t.Context(), &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context, path string, into any) error {
		data, err := c.CoreV1().RESTClient().Get().RequestURI("/apis/metrics.k8s.io/v1beta1/"+path).SetHeader(
			"Accept", "application/json").DoRaw(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, into)
	}
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		var pods metricsv1beta1.PodMetricsList
		if err := read(ctx, "namespaces/"+namespace+"/pods?labelSelector=app%3Dused", &pods); err != nil {
			return err
		}
		if len(pods.Items) != 1 || len(pods.Items[0].Containers) != 1 {
			return fmt.Errorf("the usage of Pods is %+v", pods.Items)
		}
		if usage := pods.Items[0].Containers[0].Usage; usage.Cpu().String() != "100m" || usage.Memory().String() != "200Mi" ||
			pods.Items[0].Name != "used" {
			return fmt.Errorf("the usage of Pod %s is %v", pods.Items[0].Name, usage)
		}
		var pod metricsv1beta1.PodMetrics
		return read(ctx, "namespaces/"+namespace+"/pods/used", &pod)
	})
	pod, err := c.CoreV1().Pods(namespace).Get(t.Context(), "used", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var node metricsv1beta1.NodeMetrics
	if err := read(t.Context(), "nodes/"+pod.Spec.NodeName, &node); err != nil || node.Usage.Cpu().MilliValue() < 100 {
		t.Errorf("the usage of the Pod's Node is %v, %v", node.Usage, err)
	}
	var nodes metricsv1beta1.NodeMetricsList
	if err := read(t.Context(), "nodes", &nodes); err != nil || len(nodes.Items) != 3 {
		t.Errorf("the usage of Nodes is %v, %v", nodes.Items, err)
	}
	if err := read(t.Context(), "namespaces/"+namespace+"/pods/missing", &metricsv1beta1.PodMetrics{}); !apierrors.IsNotFound(err) {
		t.Errorf("the usage of a Pod that is missing: %v", err)
	}
}
