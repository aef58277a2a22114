package resourcereferencemanager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/security"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

const (
	ns               = "garden-dev"
	workloadIdentity = "security.gardener.cloud/v1alpha1"
	internalSecret   = "core.gardener.cloud/v1beta1"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func ref(apiVersion, kind, name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: ns, Name: name}
}

func quota(name string, scope corev1.ObjectReference) *gardencore.Quota {
	return &gardencore.Quota{ObjectMeta: named(ns, name), Spec: gardencore.QuotaSpec{Scope: scope}}
}

// world returns a reader with the objects that the tests refer to, each named after its kind.
func world(more ...runtime.Object) plugintest.Reader {
	reader := plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{}}
	for _, obj := range append([]runtime.Object{
		&gardencore.CloudProfile{ObjectMeta: named("", "profile")},
		&gardencore.NamespacedCloudProfile{ObjectMeta: named(ns, "profile"),
			Spec: gardencore.NamespacedCloudProfileSpec{Parent: gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "profile"}}},
		&gardencore.Seed{ObjectMeta: named("", "seed")},
		&gardencore.SecretBinding{ObjectMeta: named(ns, "binding")},
		&security.CredentialsBinding{ObjectMeta: named(ns, "binding")},
		&gardencore.ExposureClass{ObjectMeta: named("", "class")},
		&security.WorkloadIdentity{ObjectMeta: named(ns, "identity"),
			Spec: security.WorkloadIdentitySpec{TargetSystem: security.TargetSystem{Type: "local"}}},
		&gardencore.InternalSecret{ObjectMeta: named(ns, "internal")},
		quota("project", ref(internalSecret, "Project", "")), quota("secret", ref("v1", "Secret", "")),
		quota("identity", ref(workloadIdentity, "WorkloadIdentity", "")), quota("odd", ref("v1", "Pod", "")),
		&gardencore.BackupBucket{ObjectMeta: named("", "bucket")},
		&gardencore.BackupBucket{ObjectMeta: named("", "empty")},
		&gardencore.BackupEntry{ObjectMeta: named(ns, "entry"), Spec: gardencore.BackupEntrySpec{BucketName: "bucket"}},
		&gardencore.ControllerDeployment{ObjectMeta: named("", "deployment")},
		&gardencore.Project{ObjectMeta: named("", "dev"), Spec: gardencore.ProjectSpec{Namespace: ptr.To(ns)}},
		&seedmanagement.ManagedSeed{ObjectMeta: named(ns, "managed")},
		&seedmanagement.Gardenlet{ObjectMeta: named(ns, "gardenlet")},
	}, more...) {
		_, resource, _ := kindOf(obj)
		reader.Objects[resource] = append(reader.Objects[resource], obj)
	}
	return reader
}

// kindOf derives the kind and resource from the name of the Go type.
func kindOf(obj runtime.Object) (schema.GroupKind, schema.GroupResource, metav1.Object) {
	kind := strings.SplitN(strings.TrimPrefix(fmt.Sprintf("%T", obj), "*"), ".", 2)
	group := map[string]string{"core": gardencore.GroupName, "security": security.GroupName,
		"seedmanagement": seedmanagement.GroupName}[kind[0]]
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Kind: kind[1]})
	m, _ := meta.Accessor(obj)
	return schema.GroupKind{Group: group, Kind: kind[1]}, plural.GroupResource(), m
}

// validate calls the plugin as a user who may read every object whose name does not start with "hidden".
func runValidate(t *testing.T, reader plugintest.Reader, operation admission.Operation, obj, old runtime.Object, who user.Info) error {
	t.Helper()
	p := Factory.New(plugin.Dependencies{Reader: reader, Kube: kube(), Clock: clock.RealClock{}, Authorizer: authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			switch {
			case a.GetName() == "broken":
				return authorizer.DecisionNoOpinion, "", errors.New("broken")
			case strings.HasPrefix(a.GetName(), "hidden") || a.GetVerb() != "get":
				return authorizer.DecisionNoOpinion, "", nil
			}
			return authorizer.DecisionAllow, "", nil
		})})
	kind, resource, m := kindOf(obj)
	if operation == admission.Delete {
		obj = nil
	}
	a := admission.NewAttributesRecord(obj, old, kind.WithVersion(""), m.GetNamespace(), m.GetName(),
		resource.WithVersion(""), "", operation, nil, false, who)
	return p.(admission.ValidationInterface).Validate(context.Background(), a, nil)
}

// kube returns a client that has a Secret "secret" and a ConfigMap "config" in both namespaces, and refuses credentials
// for the provider "bad".
func kube() kubernetes.Interface {
	var objs []runtime.Object
	for _, namespace := range []string{ns, "garden"} {
		objs = append(objs, &corev1.Secret{ObjectMeta: named(namespace, "secret")},
			&corev1.Secret{ObjectMeta: named(namespace, "hidden")}, &corev1.ConfigMap{ObjectMeta: named(namespace, "config")})
	}
	client := fake.NewClientset(objs...)
	const bad = v1beta1constants.LabelShootProviderPrefix + "bad"
	client.PrependReactor("create", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		secret := create.GetObject().(*corev1.Secret)
		if secret.Labels[bad] == "true" || len(create.CreateOptions.DryRun) == 0 {
			return true, nil, errors.New("bad credentials")
		}
		return true, secret, nil
	})
	api := &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		Client: restfake.CreateHTTPClient(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			status := http.StatusCreated
			if strings.Contains(string(body), bad) ||
				r.Method+" "+r.URL.RequestURI() != "POST /apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/internalsecrets?dryRun=All" {
				status = http.StatusForbidden
			}
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader("{}"))}, err
		})}
	return withREST{client, api}
}

// withREST adds a REST client to a fake clientset, which has none.
type withREST struct {
	kubernetes.Interface
	client rest.Interface
}

type discoveryWithREST struct {
	discovery.DiscoveryInterface
	client rest.Interface
}

func (w withREST) Discovery() discovery.DiscoveryInterface {
	return discoveryWithREST{w.Interface.Discovery(), w.client}
}

func (d discoveryWithREST) RESTClient() rest.Interface { return d.client }

// wantField checks that err is a 403 about the field, or nil if the field is empty.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" && err != nil || field != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), field+": ")) {
		t.Fatalf("got %v, want an error about %q", err, field)
	}
}

var ann = &user.DefaultInfo{Name: "ann"}

func shootOf(change func(*gardencore.ShootSpec)) *gardencore.Shoot {
	shoot := &gardencore.Shoot{ObjectMeta: named(ns, "shoot"),
		Spec: gardencore.ShootSpec{CloudProfile: &gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "profile"}}}
	change(&shoot.Spec)
	return shoot
}

func TestShoot(t *testing.T) {
	type spec = gardencore.ShootSpec
	crossRef := func(apiVersion, kind, name string) autoscalingv1.CrossVersionObjectReference {
		return autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
	resource := func(apiVersion, kind, name string) func(*spec) {
		return func(s *spec) {
			s.Resources = []gardencore.NamedResourceReference{{ResourceRef: crossRef(apiVersion, kind, name)}}
		}
	}
	dns := func(apiVersion, kind, name string) func(*spec) {
		return func(s *spec) {
			s.DNS = &gardencore.DNS{Providers: []gardencore.DNSProvider{{}, {CredentialsRef: ptr.To(crossRef(apiVersion, kind, name))}}}
		}
	}
	config := func(config gardencore.KubeAPIServerConfig) func(*spec) {
		return func(s *spec) { s.Kubernetes.KubeAPIServer = &config }
	}
	authz := func(configMap, secret string) func(*spec) {
		return config(gardencore.KubeAPIServerConfig{StructuredAuthorization: &gardencore.StructuredAuthorization{
			ConfigMapName: configMap, Kubeconfigs: []gardencore.AuthorizerKubeconfigReference{{SecretName: secret}}}})
	}
	for name, tc := range map[string]struct {
		change func(*spec)
		field  string
		stays  bool // whether an existing reference to a missing object is accepted
	}{
		"nothing more":  {func(*spec) {}, "", true},
		"cloud profile": {func(s *spec) { s.CloudProfile.Name = "gone" }, "spec.cloudProfile.name", false},
		"cloud profile by name": {func(s *spec) { s.CloudProfile, s.CloudProfileName = nil, ptr.To("gone") },
			"spec.cloudProfileName", false},
		"kind of cloud profile":    {func(s *spec) { s.CloudProfile.Kind = "Pod" }, "spec.cloudProfile.kind", false},
		"namespaced cloud profile": {func(s *spec) { s.CloudProfile.Kind = "NamespacedCloudProfile" }, "", true},
		"seed":                     {func(s *spec) { s.SeedName = ptr.To("seed") }, "", true},
		"no seed":                  {func(s *spec) { s.SeedName = ptr.To("gone") }, "spec.seedName", true},
		"no secret binding":        {func(s *spec) { s.SecretBindingName = ptr.To("gone") }, "spec.secretBindingName", true},
		"no credentials binding":   {func(s *spec) { s.CredentialsBindingName = ptr.To("gone") }, "spec.credentialsBindingName", true},
		"bindings": {
			func(s *spec) { s.SecretBindingName, s.CredentialsBindingName = ptr.To("binding"), ptr.To("binding") }, "", true},
		"no exposure class":           {func(s *spec) { s.ExposureClassName = ptr.To("gone") }, "spec.exposureClassName", true},
		"exposure class":              {func(s *spec) { s.ExposureClassName = ptr.To("class") }, "", true},
		"resource":                    {resource("v1", "Secret", "secret"), "", true},
		"config map as a resource":    {resource("v1", "ConfigMap", "config"), "", true},
		"identity as a resource":      {resource(workloadIdentity, "WorkloadIdentity", "identity"), "", true},
		"resource of another kind":    {resource("v1", "Pod", "pod"), "spec.resources[0].resourceRef.kind", true},
		"no resource":                 {resource("v1", "ConfigMap", "gone"), "spec.resources[0].resourceRef.name", true},
		"unreadable resource":         {resource("v1", "Secret", "hidden"), "spec.resources[0].resourceRef", true},
		"broken authorizer":           {resource("v1", "Secret", "broken"), "spec.resources[0].resourceRef", true},
		"DNS secret":                  {dns("v1", "Secret", "secret"), "", true},
		"no DNS secret":               {dns("v1", "Secret", "gone"), "spec.dns.providers[1].credentialsRef.name", true},
		"no DNS identity":             {dns(workloadIdentity, "WorkloadIdentity", "gone"), "spec.dns.providers[1].credentialsRef.name", true},
		"DNS credentials of any kind": {dns("v1", "ConfigMap", "gone"), "", true},
		"kubeconfig of a plugin": {config(gardencore.KubeAPIServerConfig{AdmissionPlugins: []gardencore.AdmissionPlugin{
			{}, {KubeconfigSecretName: ptr.To("gone")}}}), "spec.kubernetes.kubeAPIServer.admissionPlugins[1].kubeconfigSecretName", true},
		"authentication": {config(gardencore.KubeAPIServerConfig{StructuredAuthentication: &gardencore.StructuredAuthentication{
			ConfigMapName: "gone"}}), "spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName", true},
		"authorization": {authz("gone", "secret"), "spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName", true},
		"kubeconfig for authorization": {
			authz("config", "gone"), "spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[0].secretName", true},
		"authorization that is there": {authz("config", "secret"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, old := shootOf(tc.change), shootOf(func(*spec) {})
			wantField(t, runValidate(t, world(), admission.Create, shoot, nil, ann), tc.field)
			wantField(t, runValidate(t, world(), admission.Update, shoot, old, ann), tc.field)
			wantField(t, runValidate(t, world(), admission.Update, shoot, shoot, ann), "")

			// Another field changes.
			stays := tc.field
			if tc.stays {
				stays = ""
			}
			changed := shoot.DeepCopy()
			changed.Spec.Region = "elsewhere"
			wantField(t, runValidate(t, world(), admission.Update, changed, shoot, ann), stays)

			deleting := shoot.DeepCopy()
			deleting.DeletionTimestamp = &metav1.Time{}
			wantField(t, runValidate(t, world(), admission.Update, deleting, old, ann), "")
		})
	}
}

func TestBindings(t *testing.T) {
	gardenadm := &user.DefaultInfo{Name: v1beta1constants.GardenadmUserNamePrefix + "shoot", Groups: []string{v1beta1constants.ShootsGroup}}
	secret := func(name, provider string, quotas ...string) *gardencore.SecretBinding {
		b := &gardencore.SecretBinding{ObjectMeta: named(ns, "secret-binding"),
			Provider: &gardencore.SecretBindingProvider{Type: provider}, SecretRef: corev1.SecretReference{Namespace: ns, Name: name}}
		for _, q := range quotas {
			b.Quotas = append(b.Quotas, corev1.ObjectReference{Namespace: ns, Name: q})
		}
		return b
	}
	credentials := func(apiVersion, name, provider string) *security.CredentialsBinding {
		return &security.CredentialsBinding{ObjectMeta: named(ns, "credentials-binding"),
			Provider: security.CredentialsBindingProvider{Type: provider}, CredentialsRef: ref(apiVersion, "", name)}
	}
	used := shootOf(func(s *gardencore.ShootSpec) {
		s.Provider.Type, s.SecretBindingName, s.CredentialsBindingName = "local", ptr.To("secret-binding"), ptr.To("credentials-binding")
	})
	for name, tc := range map[string]struct {
		binding runtime.Object
		user    user.Info
		field   string
	}{
		"secret":                         {secret("secret", "local"), ann, ""},
		"no secret":                      {secret("gone", "local"), ann, "secretRef"},
		"unreadable":                     {secret("hidden", "local"), ann, "secretRef"},
		"broken authorizer":              {secret("broken", "local"), ann, "secretRef"},
		"gardenadm in its namespace":     {secret("hidden", "local"), gardenadm, ""},
		"refused for a provider":         {secret("secret", "local,bad"), ann, "secretRef"},
		"other provider than a shoot":    {secret("secret", "other"), ann, "provider.type"},
		"quotas":                         {secret("secret", "local", "project", "secret"), ann, ""},
		"no quota":                       {secret("secret", "local", "gone"), ann, "quotas[0]"},
		"unreadable quota":               {secret("secret", "local", "project", "hidden"), ann, "quotas[1]"},
		"two quotas for credentials":     {secret("secret", "local", "secret", "project", "identity"), ann, "quotas[2]"},
		"quota of an unknown scope":      {secret("secret", "local", "odd"), ann, "quotas[0]"},
		"credentials":                    {credentials("v1", "secret", "local"), ann, ""},
		"no credentials":                 {credentials("v1", "gone", "local"), ann, "credentialsRef"},
		"credentials of an unknown kind": {credentials("v2", "secret", "local"), ann, "credentialsRef.kind"},
		"identity":                       {credentials(workloadIdentity, "identity", "local"), ann, ""},
		"no identity":                    {credentials(workloadIdentity, "gone", "local"), ann, "credentialsRef"},
		"provider that a shoot has not":  {credentials(workloadIdentity, "identity", "other"), ann, "provider.type"},
		"internal secret":                {credentials(internalSecret, "internal", "local"), ann, ""},
		"no internal secret":             {credentials(internalSecret, "gone", "local"), ann, "credentialsRef"},
		"unreadable internal secret":     {credentials(internalSecret, "hidden", "local"), ann, "credentialsRef"},
		"internal secret, gardenadm":     {credentials(internalSecret, "internal", "local"), gardenadm, ""},
		"provider of an internal secret": {credentials(internalSecret, "internal", "bad"), ann, "provider.type"},
		"internal secret that is refused": {&security.CredentialsBinding{ObjectMeta: named(ns, "unused"), Provider: security.
			CredentialsBindingProvider{Type: "bad"}, CredentialsRef: ref(internalSecret, "", "internal")}, ann, "credentialsRef"},
		"identity of another system": {&security.CredentialsBinding{ObjectMeta: named(ns, "unused"), Provider: security.
			CredentialsBindingProvider{Type: "other"}, CredentialsRef: ref(workloadIdentity, "", "identity")}, ann, "provider.type"},
	} {
		t.Run(name, func(t *testing.T) {
			wantField(t, runValidate(t, world(used), admission.Create, tc.binding, nil, tc.user), tc.field)
			wantField(t, runValidate(t, world(used), admission.Update, tc.binding, tc.binding, tc.user), tc.field)
		})
	}
}

func TestLandscape(t *testing.T) {
	bucket := func(seed string, credentials *corev1.ObjectReference) *gardencore.BackupBucket {
		return &gardencore.BackupBucket{
			ObjectMeta: named("", "new"), Spec: gardencore.BackupBucketSpec{SeedName: &seed, CredentialsRef: credentials}}
	}
	entry := func(bucket string, seed *string) *gardencore.BackupEntry {
		return &gardencore.BackupEntry{ObjectMeta: named(ns, "new"), Spec: gardencore.BackupEntrySpec{BucketName: bucket, SeedName: seed}}
	}
	project := func(name string, namespace *string) *gardencore.Project {
		return &gardencore.Project{ObjectMeta: named("", name), Spec: gardencore.ProjectSpec{Namespace: namespace}}
	}
	seed := func(secret string) *gardencore.Seed {
		return &gardencore.Seed{ObjectMeta: named("", "new"), Spec: gardencore.SeedSpec{Resources: []gardencore.NamedResourceReference{
			{ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret}}}}}
	}
	registration := func(deployments ...string) *gardencore.ControllerRegistration {
		r := &gardencore.ControllerRegistration{ObjectMeta: named("", "new"),
			Spec: gardencore.ControllerRegistrationSpec{Deployment: &gardencore.ControllerRegistrationDeployment{}}}
		for _, name := range deployments {
			r.Spec.Deployment.DeploymentRefs = append(r.Spec.Deployment.DeploymentRefs, gardencore.DeploymentRef{Name: name})
		}
		return r
	}
	for name, tc := range map[string]struct {
		obj, old runtime.Object // old is nil for a new object
		field    string
	}{
		"bucket":                     {bucket("seed", ptr.To(ref("v1", "Secret", "secret"))), nil, ""},
		"bucket without seed":        {bucket("gone", ptr.To(ref("v1", "Secret", "secret"))), nil, "spec.seedName"},
		"bucket without credentials": {bucket("seed", nil), nil, "spec.credentialsRef"},
		"bucket, no secret":          {bucket("seed", ptr.To(ref("v1", "Secret", "gone"))), nil, "spec.credentialsRef"},
		"bucket, still no secret": {bucket("seed", ptr.To(ref("v1", "Secret", "gone"))),
			bucket("seed", ptr.To(ref("v1", "Secret", "gone"))), "spec.credentialsRef"},
		"bucket, identity":          {bucket("seed", ptr.To(ref(workloadIdentity, "WorkloadIdentity", "identity"))), nil, ""},
		"bucket, no identity":       {bucket("seed", ptr.To(ref(workloadIdentity, "WorkloadIdentity", "gone"))), nil, "spec.credentialsRef"},
		"bucket, other credentials": {bucket("seed", ptr.To(ref("v1", "ConfigMap", "config"))), nil, "spec.credentialsRef.kind"},
		"entry":                     {entry("bucket", ptr.To("seed")), nil, ""},
		"entry without bucket":      {entry("gone", nil), nil, "spec.bucketName"},
		"entry without seed":        {entry("bucket", ptr.To("gone")), nil, "spec.seedName"},
		"entry that was there":      {entry("gone", ptr.To("gone")), entry("gone", ptr.To("gone")), ""},
		"project":                   {project("new", ptr.To("garden-new")), nil, ""},
		"project, namespace taken":  {project("new", ptr.To(ns)), nil, "spec.namespace"},
		"project, namespace later":  {project("new", ptr.To(ns)), project("new", nil), "spec.namespace"},
		"project, its namespace":    {project("dev", ptr.To(ns)), project("dev", nil), ""},
		"seed":                      {seed("secret"), nil, ""},
		"seed, no resource":         {seed("gone"), seed("secret"), "spec.resources[0].resourceRef.name"},
		"registration":              {registration("deployment"), nil, ""},
		"registration, missing":     {registration("deployment", "gone"), nil, "spec.deployment.deploymentRefs[1].name"},
		"gardenlet":                 {&seedmanagement.Gardenlet{ObjectMeta: named(ns, "new")}, nil, ""},
		"gardenlet, name taken":     {&seedmanagement.Gardenlet{ObjectMeta: named(ns, "managed")}, nil, "metadata.name"},
		"managed seed":              {&seedmanagement.ManagedSeed{ObjectMeta: named(ns, "new")}, nil, ""},
		"managed seed, name taken":  {&seedmanagement.ManagedSeed{ObjectMeta: named(ns, "gardenlet")}, nil, "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Update
			if tc.old == nil {
				operation = admission.Create
			}
			wantField(t, runValidate(t, world(), operation, tc.obj, tc.old, ann), tc.field)
		})
	}
}

func TestDeleteBackupBucket(t *testing.T) {
	for name, refused := range map[string]bool{"bucket": true, "empty": false, "": true} {
		err := runValidate(t, world(), admission.Delete, &gardencore.BackupBucket{ObjectMeta: named("", name)}, nil, ann)
		if (err != nil) != refused || refused && !apierrors.IsForbidden(err) {
			t.Errorf("deleting %q: %v", name, err)
		}
	}
}
