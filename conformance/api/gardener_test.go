package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	admissionconfig "github.com/gardener/gardener/pkg/apis/config/admissioncontroller/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/gardener/admissioncontroller"
	operatorclient "github.com/gardener/gardener/pkg/operator/client"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	fakesecretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const gardenNamespace = "garden"

// withGardener starts Gardener's servers with the webhooks of its admission controller, and calls fn.
func withGardener(ctx context.Context, programs, limitsFile string, fn func(*garden) error) error {
	limits := &admissionconfig.ResourceAdmissionConfiguration{}
	data, err := os.ReadFile(limitsFile)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, limits); err != nil {
		return err
	}
	resources := []string{"core.gardener.cloud/v1/controllerdeployments", "core.gardener.cloud/v1beta1/shoots",
		"operations.gardener.cloud/v1alpha1/bastions", "security.gardener.cloud/v1alpha1/credentialsbindings",
		"seedmanagement.gardener.cloud/v1alpha1/managedseeds"}
	return harness.WithGardener(ctx, programs, resources, func(s harness.BaselineServer) error {
		port := harness.FreePort()
		controller, err := startAdmissionController(s, programs, port, limits)
		if err != nil {
			return err
		}
		defer controller.End()
		if err := register(ctx, s.Config, port, limits); err != nil {
			return err
		}
		g, err := newGarden("Gardener", s.Config)
		if err != nil {
			return err
		}
		return fn(g)
	})
}

// startAdmissionController starts gardener-admission-controller, and waits until it is ready.
func startAdmissionController(s harness.BaselineServer, programs string, port int,
	limits *admissionconfig.ResourceAdmissionConfiguration) (*harness.Process, error) {
	certificates := filepath.Join(s.Dir, "admission-controller")
	if err := os.Mkdir(certificates, 0o700); err != nil {
		return nil, err
	}
	for name, file := range map[string]string{"tls.crt": s.Certificate, "tls.key": s.Key} {
		if err := os.Symlink(file, filepath.Join(certificates, name)); err != nil {
			return nil, err
		}
	}
	server := func(port int) admissionconfig.Server {
		return admissionconfig.Server{BindAddress: "127.0.0.1", Port: port}
	}
	health, metrics := server(harness.FreePort()), server(harness.FreePort())
	config := &admissionconfig.AdmissionControllerConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionconfig.SchemeGroupVersion.String(), Kind: "AdmissionControllerConfiguration"},
		Server: admissionconfig.ServerConfiguration{
			Webhooks:     admissionconfig.HTTPSServer{Server: server(port), TLS: admissionconfig.TLSServer{ServerCertDir: certificates}},
			HealthProbes: &health, Metrics: &metrics, ResourceAdmissionConfiguration: limits,
		},
	}
	config.GardenClientConnection.Kubeconfig = s.Kubeconfig()
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(certificates, "config.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, err
	}
	controller, err := harness.Start(s.Dir, filepath.Join(programs, admissioncontroller.DeploymentName), "--config="+file)
	if err != nil {
		return nil, err
	}
	if err := harness.Poll(context.Background(), time.Minute, func() (bool, error) {
		if controller.Ended() {
			return false, fmt.Errorf("%s ended", admissioncontroller.DeploymentName)
		}
		return harness.Get(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/readyz", health.Port)) == nil, nil
	}); err != nil {
		defer controller.End()
		return nil, fmt.Errorf("%w: %s", err, controller.Log())
	}
	return controller, nil
}

// register creates the configurations with which Gardener's operator registers the webhooks, with the address of the
// running ones.
func register(ctx context.Context, config *rest.Config, port int, limits *admissionconfig.ResourceAdmissionConfiguration) error {
	secret := func(name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gardenNamespace, Name: name}}
	}
	runtime := fake.NewClientBuilder().WithScheme(operatorclient.RuntimeScheme).
		WithObjects(secret("generic-token-kubeconfig"), secret("ca-gardener")).Build()
	if err := admissioncontroller.New(runtime, gardenNamespace, fakesecretsmanager.New(runtime, gardenNamespace), admissioncontroller.Values{
		ResourceAdmissionConfiguration: limits, AuthorizerRestrictionsEnabled: true, RuntimeVersion: semver.MustParse("1.36.0"),
	}).Deploy(ctx); err != nil {
		return err
	}
	objects, err := managedresources.GetObjects(ctx, runtime, gardenNamespace, admissioncontroller.ManagedResourceNameVirtual)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: kubernetes.GardenScheme})
	if err != nil {
		return err
	}
	// What gardenlets may do is the authorizer's to decide, which this is not about.
	objects = append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "gardenlets"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: gardenlets}}})
	for _, o := range objects {
		switch o := o.(type) {
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for i := range o.Webhooks {
				redirect(&o.Webhooks[i].ClientConfig, port, config.CAData)
			}
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for i := range o.Webhooks {
				redirect(&o.Webhooks[i].ClientConfig, port, config.CAData)
			}
		case *rbacv1.ClusterRoleBinding, *rbacv1.ClusterRole:
		default:
			continue
		}
		if err := c.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func redirect(config *admissionregistrationv1.WebhookClientConfig, port int, ca []byte) {
	_, path, _ := strings.Cut(strings.TrimPrefix(*config.URL, "https://"), "/")
	address := (&url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/" + path}).String()
	config.URL, config.CABundle = &address, ca
}
