package kubecontrollers_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// patience is how long a controller may take.
const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("GARDENLITE_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
		logrus.SetOutput(io.Discard)
	}
	os.Exit(m.Run())
}

type cluster struct {
	server  *controlplane.Server
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	server, err := controlplane.Start(ctx, controlplane.Config{
		Name: "test", PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data"), Datastore: datastore.Memory,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := server.ClientConfig("admin", "admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return &cluster{server: server, client: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config)}
}

// runControllers runs all controllers until the function that it returns is called.
func (c *cluster) runControllers(t *testing.T, workloads bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	pki := c.server.PKI()
	var controllers *kubecontrollers.Controllers
	var idle func(schema.GroupResource, string, func()) bool
	if workloads { // until it stops, the server keeps a reference to all controllers that wait for objects
		idle = c.server.Idle
	}
	var err error
	pprof.Do(ctx, controllerGoroutines, func(ctx context.Context) {
		controllers, err = kubecontrollers.New(ctx, kubecontrollers.Config{
			ClientConfig:          c.server.ClientConfig,
			RootCA:                pki.CAPEM(),
			SigningCertFile:       pki.SigningCertFile(),
			SigningKeyFile:        pki.SigningKeyFile(),
			ServiceAccountKeyFile: pki.ServiceAccountKeyFile(),
			Idle:                  idle,
			Workloads:             workloads,
		})
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go pprof.Do(ctx, controllerGoroutines, func(ctx context.Context) {
		defer close(ended)
		controllers.Run(ctx)
	})
	stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the controllers have not ended")
		}
	}
	select {
	case <-controllers.Ready():
	case <-time.After(patience):
		stop()
		t.Fatal("the controllers are not ready")
	}
	return stop
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// serveWidgets adds a custom resource while the controllers run.
func (c *cluster) serveWidgets(t *testing.T) {
	t.Helper()
	crds := c.dynamic.Resource(
		schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		_, err := c.dynamic.Resource(widgets).List(ctx, metav1.ListOptions{})
		return err
	})
}

func (c *cluster) createWidget(t *testing.T, namespace, name string, finalizers ...string) *unstructured.Unstructured {
	t.Helper()
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	widget.SetName(name)
	widget.SetFinalizers(finalizers)
	var created *unstructured.Unstructured
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) (err error) {
		created, err = c.dynamic.Resource(widgets).Namespace(namespace).Create(ctx, widget, metav1.CreateOptions{})
		return err
	})
	return created
}

func (c *cluster) createNamespace(t *testing.T, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestControllers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	c := startCluster(t)
	stop := c.runControllers(t, true)
	t.Cleanup(stop)
	c.serveWidgets(t)
	var started atomic.Bool
	services := schema.GroupResource{Resource: "services"}
	if !c.server.Idle(services, "default/kubernetes", func() { started.Store(true) }) {
		t.Error("the API server's own Service starts controllers")
	}
	testutil.EventuallyTrue(t, "the API server has its own Service", func() bool { return !c.server.Idle(services, "", func() {}) })
	if started.Load() {
		t.Error("the API server's own Service starts controllers")
	}
	t.Run("endpointslice-controller", func(t *testing.T) { testServiceWithoutPods(t, c) }) // other tests create Pods
	if !started.Load() {
		t.Error("the first Service of a user starts no controllers")
	}

	for name, test := range map[string]func(*testing.T, *cluster){
		"namespace-controller":                         testNamespaceDeletion,
		"garbage-collector-controller":                 testGarbageCollection,
		"serviceaccount-controller":                    testServiceAccounts,
		"clusterrole-aggregation-controller":           testAggregation,
		"certificatesigningrequest-signing-controller": testSigning,
		"token-cleaner-controller":                     testBootstrapTokens,
		"resourcequota-controller":                     testQuota,
		"protection controllers":                       testProtection,
		"endpointslice-mirroring-controller":           testMirroring,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

func testNamespaceDeletion(t *testing.T, c *cluster) {
	c.createNamespace(t, "to-be-deleted")
	c.createWidget(t, "to-be-deleted", "one")
	c.createWidget(t, "to-be-deleted", "held", "example.com/hold")
	if err := c.client.CoreV1().Namespaces().Delete(t.Context(), "to-be-deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	inNamespace := c.dynamic.Resource(widgets).Namespace("to-be-deleted")
	testutil.EventuallyTrue(t, "the namespace has only what a finalizer holds", func() bool {
		list, err := inNamespace.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].GetDeletionTimestamp() != nil
	})
	if _, err := inNamespace.Patch(t.Context(), "held", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "the namespace is gone", func() bool {
		_, err := c.client.CoreV1().Namespaces().Get(t.Context(), "to-be-deleted", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func testGarbageCollection(t *testing.T, c *cluster) {
	configMaps := c.client.CoreV1().ConfigMaps("default")
	for name, policy := range map[string]metav1.DeletionPropagation{"background": metav1.DeletePropagationBackground,
		"foreground": metav1.DeletePropagationForeground} {
		owner := c.createWidget(t, "default", name)
		blocks := true
		ref := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Widget", Name: name, UID: owner.GetUID(), BlockOwnerDeletion: &blocks}
		dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{ref}}}
		if _, err := configMaps.Create(t.Context(), dependent, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.dynamic.Resource(widgets).Namespace("default").Delete(
			t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		testutil.EventuallyTrue(t, "owner and dependent are gone, deleted in the "+name, func() bool {
			_, dependentErr := configMaps.Get(t.Context(), name, metav1.GetOptions{})
			_, ownerErr := c.dynamic.Resource(widgets).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(dependentErr) && apierrors.IsNotFound(ownerErr)
		})
	}
}

func testServiceAccounts(t *testing.T, c *cluster) {
	c.createNamespace(t, "accounts")
	testutil.EventuallyTrue(t, "default service account and root CA are there", func() bool {
		_, err := c.client.CoreV1().ServiceAccounts("accounts").Get(t.Context(), "default", metav1.GetOptions{})
		ca, caErr := c.client.CoreV1().ConfigMaps("accounts").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil && caErr == nil && ca.Data["ca.crt"] == string(c.server.PKI().CAPEM())
	})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	secrets := c.client.CoreV1().Secrets("accounts")
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var token string
	testutil.EventuallyTrue(t, "the token is in its Secret", func() bool {
		secret, err := secrets.Get(t.Context(), "token", metav1.GetOptions{})
		token = string(secret.Data[corev1.ServiceAccountTokenKey])
		return err == nil && token != "" && bytes.Equal(secret.Data[corev1.ServiceAccountRootCAKey], c.server.PKI().CAPEM())
	})
	withToken := kubernetes.NewForConfigOrDie(
		&rest.Config{Host: c.server.URL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.server.PKI().CAPEM()}})
	// The API server may still have the Secret without a token in its cache, as Kubernetes' own does.
	testutil.EventuallyTrue(t, "the token is its service account's", func() bool {
		_, err := withToken.CoreV1().Secrets("accounts").List(t.Context(), metav1.ListOptions{})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "system:serviceaccount:accounts:default")
	})
}

func testAggregation(t *testing.T, c *cluster) {
	label := map[string]string{"example.com/aggregate": "true"}
	rule := rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"widgets"}, Verbs: []string{"get"}}
	roles := c.client.RbacV1().ClusterRoles()
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "sum"},
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: label}, Rules: []rbacv1.PolicyRule{rule}},
	} {
		if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testutil.EventuallyTrue(t, "rules are aggregated", func() bool {
		role, err := roles.Get(t.Context(), "sum", metav1.GetOptions{})
		return err == nil && len(role.Rules) == 1
	})
}

func testSigning(t *testing.T, c *cluster) {
	keyPEM, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	requestPEM, err := cert.MakeCSR(key, &pkix.Name{CommonName: "alice"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	life := time.Hour
	name, uid, err := csr.RequestCertificate(c.client, requestPEM, "signed", certificatesv1.KubeAPIServerClientSignerName, &life,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := c.client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || request.UID != uid {
		t.Fatal(err, request.UID)
	}
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", LastUpdateTime: metav1.Now(),
	})
	if _, err := requests.UpdateApproval(t.Context(), name, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var signed []byte
	testutil.EventuallyTrue(t, "the request is signed", func() bool {
		request, err := requests.Get(t.Context(), name, metav1.GetOptions{})
		signed = request.Status.Certificate
		return err == nil && len(signed) > 0
	})
	block, _ := pem.Decode(signed)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.server.PKI().CAPEM())
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if got := certificate.NotAfter.Sub(certificate.NotBefore); got > life+10*time.Minute {
		t.Errorf("the certificate is valid for %s", got)
	}
}

func testBootstrapTokens(t *testing.T, c *cluster) {
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}, Data: map[string]string{"kubeconfig": "a: b"}}
	if _, err := c.client.CoreV1().ConfigMaps("kube-public").Create(t.Context(), info, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secrets := c.client.CoreV1().Secrets("kube-system")
	for id, expires := range map[string]time.Time{"abcdef": time.Now().Add(time.Hour), "aaaaaa": time.Now().Add(-time.Hour)} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
			Type:       "bootstrap.kubernetes.io/token",
			StringData: map[string]string{"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true",
				"expiration": expires.Format(time.RFC3339)},
		}
		if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testutil.EventuallyTrue(t, "cluster-info is signed with the token that is valid", func() bool {
		info, err := c.client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
		return err == nil && info.Data["jws-kubeconfig-abcdef"] != "" && info.Data["jws-kubeconfig-aaaaaa"] == ""
	})
	testutil.EventuallyTrue(t, "the expired token is gone", func() bool {
		_, err := secrets.Get(t.Context(), "bootstrap-token-aaaaaa", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func testQuota(t *testing.T, c *cluster) {
	c.createNamespace(t, "quota")
	hard := corev1.ResourceList{"count/widgets.example.com": resource.MustParse("2"),
		corev1.ResourceSecrets: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("2")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := c.client.CoreV1().ResourceQuotas("quota").Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		_, err := c.client.CoreV1().Pods("quota").Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	used := func(want map[corev1.ResourceName]int64) func() bool {
		return func() bool {
			quota, err := c.client.CoreV1().ResourceQuotas("quota").Get(t.Context(), "q", metav1.GetOptions{})
			for name, n := range want {
				if have, ok := quota.Status.Used[name]; !ok || have.Value() != n {
					return false
				}
			}
			return err == nil
		}
	}
	// The admission plugin refuses the object until the controller has counted the resources of the quota.
	c.createWidget(t, "quota", "one")
	testutil.EventuallyTrue(t, "what exists is counted",
		used(map[corev1.ResourceName]int64{"count/widgets.example.com": 1, corev1.ResourcePods: 1, corev1.ResourceSecrets: 0}))
	if err := c.dynamic.Resource(widgets).Namespace("quota").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "what is gone counts no more",
		used(map[corev1.ResourceName]int64{"count/widgets.example.com": 0, corev1.ResourcePods: 1}))
}

// testProtection checks that objects which the admission protects while they are used can be deleted when they are not.
func testProtection(t *testing.T, c *cluster) {
	c.createNamespace(t, "protection")
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claims, volumes := c.client.CoreV1().PersistentVolumeClaims("protection"), c.client.CoreV1().PersistentVolumes()
	classes := c.client.StorageV1().VolumeAttributesClasses()
	claim, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(claim.Finalizers) == 0 {
		t.Error("the admission protects no claims")
	}
	if _, err := volumes.Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: corev1.PersistentVolumeSpec{AccessModes: modes, Capacity: size, PersistentVolumeSource: corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := classes.Create(t.Context(), &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "x"},
		DriverName: "x.example.com", Parameters: map[string]string{"a": "b"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for what, remove := range map[string]func(context.Context, string, metav1.DeleteOptions) error{
		"claim": claims.Delete, "volume": volumes.Delete, "class": classes.Delete,
	} {
		testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
			if err := remove(ctx, "x", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the %s is still there: %v", what, err)
			}
			return nil
		})
	}
}

// testServiceWithoutPods checks that a Service with a selector has Endpoints and an EndpointSlice without addresses in a
// cluster that has never had a Pod.
func testServiceWithoutPods(t *testing.T, c *cluster) {
	c.createNamespace(t, "services")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "x"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := c.client.CoreV1().Services("services").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "there are empty Endpoints and an empty EndpointSlice", func() bool {
		slices, err := c.client.DiscoveryV1().EndpointSlices("services").List(t.Context(),
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=x"})
		if err != nil || len(slices.Items) != 1 || len(slices.Items[0].Endpoints) != 0 {
			return false
		}
		endpoints, err := c.client.CoreV1().Endpoints("services").Get(t.Context(), "x", metav1.GetOptions{})
		return err == nil && len(endpoints.Subsets) == 0
	})
}

// testMirroring checks that Endpoints that no controller manages have EndpointSlices, too.
func testMirroring(t *testing.T, c *cluster) {
	c.createNamespace(t, "mirroring")
	meta := metav1.ObjectMeta{Name: "x"}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := c.client.CoreV1().Services("mirroring").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	//nolint:staticcheck // Endpoints are what is mirrored.
	endpoints := &corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{
		{Addresses: []corev1.EndpointAddress{{IP: "10.1.2.3"}}, Ports: []corev1.EndpointPort{{Port: 8080}}}}}
	if _, err := c.client.CoreV1().Endpoints("mirroring").Create(t.Context(), endpoints, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "there is an EndpointSlice", func() bool {
		slices, err := c.client.DiscoveryV1().EndpointSlices("mirroring").List(t.Context(),
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=x"})
		return err == nil && len(slices.Items) == 1 && len(slices.Items[0].Endpoints) == 1
	})
}

// TestStartStopCycles starts and stops the controllers repeatedly, and checks that they leak neither goroutines nor
// memory.
func TestStartStopCycles(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	if !testutil.OwnProcess(t) {
		return
	}
	const cycles = 20
	c := startCluster(t)
	// The OpenAPI document is created on demand, which could otherwise happen at any time during the test.
	if _, err := c.client.Discovery().RESTClient().Get().AbsPath("/openapi/v2").DoRaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	cycle := func() time.Duration {
		begin := time.Now()
		stop := c.runControllers(t, false)
		took := time.Since(begin)
		stop()
		return took
	}
	empty := settled(0)
	t.Logf("first start in %s", cycle())
	cycle()
	const heapMiB = 8
	before := settled(0)
	round := func() usage {
		for range cycles {
			cycle()
		}
		after := settled(before.goroutines + 10)
		t.Logf("without controllers: %+v; after 2 cycles: %+v; after %d more: %+v", empty, before, cycles, after)
		return after
	}
	after := round()
	if after.heapMiB > before.heapMiB+heapMiB { // Something that is created once came later. A leak grows again in the next round.
		before.heapMiB = after.heapMiB
		after = round()
	}
	if after.goroutines > before.goroutines+10 {
		_, stacks := ofControllers()
		t.Errorf("%d goroutines more after %d cycles:\n%s", after.goroutines-before.goroutines, cycles, stacks)
	}
	if after.heapMiB > before.heapMiB+heapMiB {
		t.Errorf("%d MiB more live heap after %d cycles", after.heapMiB-before.heapMiB, cycles)
	}
	stop := c.runControllers(t, false)
	t.Logf("running: %+v", used())
	stop()
}

// controllerGoroutines labels the goroutines of the controllers and their children: the goroutines of the API server in
// the same process come and go.
var controllerGoroutines = pprof.Labels("part", "controllers")

// ofControllers returns the number of goroutines of the controllers, and their stacks.
func ofControllers() (n int, stacks string) {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
	var out strings.Builder
	for block := range strings.SplitSeq(all.String(), "\n\n") {
		var count int
		if !strings.Contains(block, `"part":"controllers"`) {
			continue
		}
		if _, err := fmt.Sscanf(block, "%d @", &count); err == nil {
			n += count
			out.WriteString(block + "\n\n")
		}
	}
	return n, out.String()
}

type usage struct {
	goroutines int
	heapMiB    int64
}

// settled returns the usage once at most the given number of the controllers' goroutines are left, or after a timeout:
// some goroutines wait for a connection to close.
func settled(want int) usage {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(patience / 2)
	for n, _ := ofControllers(); n > want && time.Now().Before(deadline); n, _ = ofControllers() {
		<-ticker.C
	}
	return used()
}

func used() usage {
	runtime.GC()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	n, _ := ofControllers()
	return usage{n, int64(stats.HeapAlloc) >> 20}
}
