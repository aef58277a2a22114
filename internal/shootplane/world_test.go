package shootplane_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/shootplane"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func TestMain(m *testing.M) {
	if os.Getenv("GARDENLITE_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
		ctrllog.SetLogger(logr.Discard())
		logrus.SetOutput(io.Discard)
	}
	os.Exit(m.Run())
}

// world is a seed with a host of control planes.
type world struct {
	dir      string
	host     *shootplane.Host
	seed     kubernetes.Interface
	asRunner *rest.Config
	// stops counts the control planes that were stopped.
	stops atomic.Int32
}

// newWorld returns a world with a runner.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := newSeed(t)
	t.Cleanup(w.run(t))
	return w
}

func newSeed(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cluster, err := seed.Start(
		ctx, seed.Config{Config: controlplane.Config{Name: "local", PKIDir: filepath.Join(dir, "pki", "seed"), DataDir: filepath.Join(dir,
			"data", "seed")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := cluster.AdminConfig()
	config.QPS = -1
	w := &world{dir: dir, seed: kubernetes.NewForConfigOrDie(config)}
	w.host = shootplane.NewHost(shootplane.HostConfig{
		Dir: dir, Log: klog.Background(),
		DeleteVolumes: func(id string) error { return os.RemoveAll(filepath.Join(dir, "volumes", "shoots", id)) },
		OnChange: func(s shootplane.Status) {
			if s.Phase == shootplane.Stopping {
				w.stops.Add(1)
			}
		},
	})
	t.Cleanup(w.host.Stop)
	if w.asRunner, err = cluster.Server().ClientConfig("control-planes", shootplane.User); err != nil {
		t.Fatal(err)
	}
	return w
}

// run starts a runner.
func (w *world) run(t testing.TB) (stop func()) {
	t.Helper()
	runner, err := shootplane.New(
		shootplane.Config{REST: w.asRunner, Host: w.host, Seed: "local", Log: klog.Background()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// create creates the objects of a control plane, as a gardenlet does.
func (w *world) create(t testing.TB, id string, secret map[string][]byte) {
	t.Helper()
	ctx := t.Context()
	_, err := w.seed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	_, err = w.seed.CoreV1().Secrets(id).Create(
		ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: spec.SecretName}, Data: secret}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for name, role := range map[string]string{spec.APIServer: spec.RoleAPIServer, spec.ControllerManager: spec.RoleControllerManager} {
		if _, err := w.seed.AppsV1().Deployments(id).Create(ctx, deployment(name, role), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.seed.CoreV1().Services(id).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: spec.ServiceName},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: spec.ServicePort}}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func deployment(name, role string) *appsv1.Deployment {
	labels := spec.Labels(role)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{
			spec.AnnotationVersion: "1.34.4", spec.AnnotationServiceCIDR: "100.64.0.0/13",
		}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{spec.AnnotationChecksum: "1"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: spec.Image(name, "1.34.4")}}},
			},
		},
	}
}

func (w *world) scale(t testing.TB, id string, replicas int32) {
	t.Helper()
	for _, name := range []string{spec.ControllerManager, spec.APIServer} {
		w.change(t, id, name, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	}
}

func (w *world) change(t testing.TB, id, name string, change func(*appsv1.Deployment)) {
	t.Helper()
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		d, err := w.seed.AppsV1().Deployments(id).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(d)
		_, err = w.seed.AppsV1().Deployments(id).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
}

// waitFor waits until the status of a Deployment is up to date and has this number of replicas.
func (w *world) waitFor(t testing.TB, id, name string, replicas int32) {
	t.Helper()
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		d, err := w.seed.AppsV1().Deployments(id).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration == d.Generation && s.Replicas == replicas && s.ReadyReplicas == replicas && s.UpdatedReplicas == replicas {
			return nil
		}
		return fmt.Errorf("Deployment %s does not have %d replicas: %s", name, replicas, s.String())
	})
}

// authorities returns the data of a Secret with new authorities.
func authorities(t testing.TB) map[string][]byte {
	t.Helper()
	export := func(name string) pki.Shared {
		shared, err := pki.Export(pki.Config{Dir: t.TempDir(), Name: name, Clock: clock.RealClock{}})
		if err != nil {
			t.Fatal(err)
		}
		return shared
	}
	ca, clients := export("ca"), export("ca-client")
	return map[string][]byte{
		spec.KeyCA: ca["ca.crt"], spec.KeyCAKey: ca["ca.key"], spec.KeyCABundle: ca["ca.crt"],
		spec.KeyClientCA: clients["ca.crt"], spec.KeyClientCAKey: clients["ca.key"], spec.KeyClientCABundle: clients["ca.crt"],
		spec.KeyFrontProxyCA: ca["front-proxy-ca.crt"], spec.KeyFrontProxyCAKey: ca["front-proxy-ca.key"],
		spec.KeyServiceAccountKey: ca["service-account.key"], spec.KeyServiceAccountBundle: ca["service-account.key"],
	}
}

// client returns a client with all rights for the address in the Service, and this address. The client authority signs
// its certificate, as a gardenlet does it.
func (w *world) client(t testing.TB, id string, secret map[string][]byte) (kubernetes.Interface, string) {
	t.Helper()
	service, err := w.seed.CoreV1().Services(id).Get(t.Context(), spec.ServiceName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := spec.Endpoint(service)
	if endpoint == "" {
		t.Fatal("the Service tells no address")
	}
	dir := t.TempDir()
	files := map[string][]byte{"ca.crt": secret[spec.KeyClientCA], "ca.key": secret[spec.KeyClientCAKey]}
	for name, data := range maps.All(files) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, key, err := pki.IssueFrom(dir, clock.RealClock{}, "test-user", []string{"system:masters"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: "https://" + endpoint, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: secret[spec.KeyCABundle], CertData: cert, KeyData: key}}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(config, http)
	if err != nil {
		t.Fatal(err)
	}
	return client, endpoint
}
