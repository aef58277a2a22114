package gardenwebhooks

import (
	"encoding/json"
	"strings"
	"testing"

	admissionconfig "github.com/gardener/gardener/pkg/apis/config/admissioncontroller/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

const project = "garden-dev"

// world is a garden with objects, and the graph of their references.
type world struct {
	t        *testing.T
	webhooks map[string]Webhook
	rejected map[string]int // by reason
}

func newWorld(t *testing.T, limits *admissionconfig.ResourceAdmissionConfiguration, objects ...client.Object) world {
	t.Helper()
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&gardencorev1beta1.Shoot{}, core.ShootSeedName, func(obj client.Object) []string {
			return []string{ptr.Deref(obj.(*gardencorev1beta1.Shoot).Spec.SeedName, "")}
		}).Build()
	g := graph.New()
	for _, object := range objects {
		if owner, edges, ok := graph.EdgesOf(object, nil); ok {
			g.Set(owner, edges)
		}
	}
	w := world{t: t, webhooks: map[string]Webhook{}, rejected: map[string]int{}}
	for _, webhook := range All(reader, g, limits, func(_ *admissionv1.AdmissionRequest, reason string) { w.rejected[reason]++ }) {
		w.webhooks[strings.TrimSuffix(webhook.Name, ".gardener.cloud")] = webhook
	}
	return w
}

// request is a request of a user.
type request struct {
	old, obj client.Object // old is nil for CREATE, obj for DELETE
	user     authenticationv1.UserInfo
}

// ask asks a webhook, and returns "" if it allows the request, or the code and message of its answer.
func (w world) ask(webhook string, r request) (string, *admissionv1.AdmissionResponse) {
	w.t.Helper()
	some, operation := r.obj, admissionv1.Update
	if r.old == nil {
		operation = admissionv1.Create
	}
	if r.obj == nil {
		some, operation = r.old, admissionv1.Delete
	}
	gvk, err := kindOf(some)
	if err != nil {
		w.t.Fatal(err)
	}
	response := w.webhooks[webhook].Handle(w.t.Context(), &admissionv1.AdmissionRequest{
		UID: "uid", Operation: operation, Name: some.GetName(), Namespace: some.GetNamespace(), UserInfo: r.user,
		Kind:     metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Resource: metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"},
		Object:   w.raw(r.obj), OldObject: w.raw(r.old),
	})
	if response.Allowed {
		return "", response
	}
	return response.Result.Message, response
}

func (w world) raw(obj client.Object) runtime.RawExtension {
	if obj == nil {
		return runtime.RawExtension{}
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		w.t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}

func meta(namespace, name string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

func secret(namespace, name string, data ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: meta(namespace, name), Data: map[string][]byte{}}
	for i := 0; i < len(data); i += 2 {
		s.Data[data[i]] = []byte(data[i+1])
	}
	return s
}

func shoot(name string, change func(*gardencorev1beta1.KubeAPIServerConfig)) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{ObjectMeta: meta(project, name)}
	s.Spec.SeedName, s.Spec.Kubernetes.Version = ptr.To("a"), "1.35.0"
	if change != nil {
		s.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{}
		change(s.Spec.Kubernetes.KubeAPIServer)
	}
	return s
}

func deleting[T client.Object](obj T) T {
	obj.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
	obj.SetFinalizers([]string{"test"})
	return obj
}

func check(t *testing.T, got, want string) {
	t.Helper()
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("answered %q, want %q", got, want)
	}
}

func TestNamespaceDeletion(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: meta("", project, "project.gardener.cloud/name", "dev")}
	dev := &gardencorev1beta1.Project{ObjectMeta: meta("", "dev")}
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"of a Project": {[]client.Object{namespace, dev}, `you must delete the corresponding project "dev"`},
		"of a Project that is being deleted and has Shoots": {
			[]client.Object{namespace, deleting(dev.DeepCopy()), shoot("s", nil)}, "it still contains Shoots"},
		"of a Project that is being deleted": {[]client.Object{namespace, deleting(dev.DeepCopy())}, ""},
		"that is being deleted":              {[]client.Object{deleting(namespace.DeepCopy()), dev}, ""},
		"without a Project":                  {[]client.Object{namespace}, ""},
		"that does not exist":                {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, response := newWorld(t, nil, test.objects...).ask("validate-namespace-deletion", request{old: namespace})
			check(t, got, test.want)
			if got != "" && (response.Result.Code != 403 || response.Result.Reason != metav1.StatusReasonForbidden) {
				t.Errorf("the answer is %v", response.Result)
			}
		})
	}
}

func TestKubeconfigSecret(t *testing.T) {
	const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": %}]}`
	for user, want := range map[string]string{
		`{"token": "t"}`:                                         "",
		`{"client-certificate-data": "YQ=="}`:                    "",
		`{"client-certificate": "/a"}`:                           "client certificate files are not supported",
		`{"client-key": "/a"}`:                                   "client key files are not supported",
		`{"tokenFile": "/a"}`:                                    "token files are not supported",
		`{"as": "admin"}`:                                        "impersonation is not supported",
		`{"as-groups": ["system:masters"]}`:                      "impersonation is not supported",
		`{"exec": {"command": "id"}}`:                            "exec configurations are not supported",
		`{"auth-provider": {"name": "a", "config": {"b": "c"}}}`: "auth provider configurations are not supported",
	} {
		got, _ := newWorld(t, nil).ask("validate-kubeconfig-secrets", request{obj: secret(project, "k", "kubeconfig",
			strings.Replace(kubeconfig, "%", user, 1))})
		check(t, got, want)
	}
	got, _ := newWorld(t, nil).ask("validate-kubeconfig-secrets", request{obj: secret(project, "k", "kubeconfig", "{")})
	check(t, got, "yaml: line 1")
	got, _ = newWorld(t, nil).ask("validate-kubeconfig-secrets", request{old: secret(project, "k"), obj: secret(project, "k", "other", "{")})
	check(t, got, "")
}

func TestKubeconfigSecretReference(t *testing.T) {
	byPlugin := shoot("plugin", func(c *gardencorev1beta1.KubeAPIServerConfig) {
		c.AdmissionPlugins = []gardencorev1beta1.AdmissionPlugin{{Name: "p", KubeconfigSecretName: ptr.To("k")}}
	})
	byPlugin.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "k"}}
	byPlugin.Spec.Resources[0].ResourceRef.APIVersion, byPlugin.Spec.Resources[0].ResourceRef.Kind = "v1", "Secret"
	byPlugin.Spec.Resources[0].ResourceRef.Name = "k"
	byAuthorizer := shoot("authorizer", func(c *gardencorev1beta1.KubeAPIServerConfig) {
		c.StructuredAuthorization = &gardencorev1beta1.StructuredAuthorization{ConfigMapName: "c",
			Kubeconfigs: []gardencorev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "a", SecretName: "k"}}}
	})
	w := newWorld(t, nil, byPlugin, byAuthorizer, shoot("other", nil))
	for _, test := range []struct {
		secret *corev1.Secret
		want   string
	}{
		{secret(project, "k"), "secret is in use by shoots: [authorizer, plugin]"},
		{secret(project, "k", "kubeconfig", ""), "secret is in use by shoots: [authorizer, plugin]"},
		{secret(project, "k", "kubeconfig", "any"), ""},
		{secret(project, "other"), ""},
		{secret("garden-other", "k"), ""},
	} {
		got, _ := w.ask("shoot-kubeconfig-secret-ref",
			request{old: secret(test.secret.Namespace, test.secret.Name, "kubeconfig", "any"), obj: test.secret})
		check(t, got, test.want)
	}
}

func TestInternalDomainSecret(t *testing.T) {
	domain := func(namespace, name, domain string) *corev1.Secret {
		s := secret(namespace, name)
		s.Labels = map[string]string{"gardener.cloud/role": "internal-domain", "role": "internal-domain"}
		s.Annotations = map[string]string{"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": domain}
		return s
	}
	unlabelled := domain("garden", "b", "b.example")
	unlabelled.Labels = nil
	plain := secret("garden", "c")
	inUse := []client.Object{domain("garden", "a", "a.example"), domain("seed-a", "a", "a.example"),
		domain("seed-b", "a", "a.example"), shoot("s", nil)}
	for name, test := range map[string]struct {
		objects []client.Object
		request request
		want    string
	}{
		"created":                       {nil, request{obj: domain("garden", "a", "a.example")}, ""},
		"created without a domain":      {nil, request{obj: domain("garden", "a", "")}, "missing dns domain annotation"},
		"created without annotations":   {nil, request{obj: plain}, "domain secret has no annotations"},
		"a second one created":          {inUse, request{obj: domain("garden", "b", "b.example")}, "there can be only one secret"},
		"one for another seed created":  {inUse, request{obj: domain("seed-c", "b", "b.example")}, ""},
		"in another namespace":          {inUse, request{obj: domain(project, "b", "b.example")}, ""},
		"changed":                       {inUse, request{old: inUse[0], obj: domain("garden", "a", "b.example")}, "cannot change domain"},
		"changed while there is none":   {inUse[:1], request{old: inUse[0], obj: domain("garden", "a", "b.example")}, ""},
		"changed for a seed in use":     {inUse, request{old: inUse[1], obj: domain("seed-a", "a", "b.example")}, "cannot change domain"},
		"changed for a seed not in use": {inUse, request{old: inUse[2], obj: domain("seed-b", "a", "b.example")}, ""},
		"kept":                          {inUse, request{old: inUse[0], obj: inUse[0]}, ""},
		"labelled as a second one":      {inUse, request{old: unlabelled, obj: domain("garden", "b", "b.example")}, "cannot update secret"},
		"deleted":                       {inUse, request{old: inUse[0]}, "cannot delete internal domain secret"},
		"deleted while there is none":   {inUse[:1], request{old: inUse[0]}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := newWorld(t, nil, test.objects...).ask("internal-domain-secret", test.request)
			check(t, got, test.want)
		})
	}
}

func TestUpdateRestriction(t *testing.T) {
	object := secret(project, "a.ca-cluster")
	create, update, remove := request{obj: object}, request{old: object, obj: object}, request{old: object}
	for _, test := range []struct {
		user    authenticationv1.UserInfo
		refused []request
		allowed []request
	}{
		{authenticationv1.UserInfo{Username: "alice"}, []request{create, update, remove}, nil},
		{authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"}}, nil,
			[]request{create, update, remove}},
		{authenticationv1.UserInfo{Username: "system:serviceaccount:kube-system:generic-garbage-collector"}, []request{create, update},
			[]request{remove}},
		{authenticationv1.UserInfo{Username: "system:serviceaccount:kube-system:gardener-internal"}, []request{create, remove},
			[]request{update}},
	} {
		for want, requests := range map[string][]request{"is not allowed to": test.refused, "": test.allowed} {
			for _, r := range requests {
				r.user = test.user
				got, _ := newWorld(t, nil).ask("update-restriction", r)
				check(t, got, want)
			}
		}
	}
}

func TestProviderLabels(t *testing.T) {
	secretBinding := &gardencorev1beta1.SecretBinding{ObjectMeta: meta(project, "s"),
		Provider: &gardencorev1beta1.SecretBindingProvider{Type: "aws,gcp"}}
	secretBinding.SecretRef.Namespace, secretBinding.SecretRef.Name = project, "credentials"
	credentialsBinding := &securityv1alpha1.CredentialsBinding{ObjectMeta: meta(project, "c"),
		Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"}}
	credentialsBinding.CredentialsRef = corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: project, Name: "credentials"}
	internal := credentialsBinding.DeepCopy()
	internal.Name, internal.CredentialsRef.Kind, internal.CredentialsRef.APIVersion = "i", "InternalSecret", "core.gardener.cloud/v1beta1"
	w := newWorld(t, nil, secretBinding, credentialsBinding, internal)
	labelled := secret(project, "credentials")
	labelled.Labels = map[string]string{"a": "b", "provider.shoot.gardener.cloud/azure": "true"}
	const prefix = `[{"op":"add","path":"/metadata/labels","value":{`
	for _, test := range []struct {
		obj  client.Object
		want string
	}{
		{labelled, prefix + `"a":"b","provider.shoot.gardener.cloud/aws":"true","provider.shoot.gardener.cloud/gcp":"true",` +
			`"provider.shoot.gardener.cloud/local":"true"}}]`},
		{&gardencorev1beta1.InternalSecret{ObjectMeta: meta(project, "credentials")}, prefix + `"provider.shoot.gardener.cloud/local":"true"}}]`},
		{secret(project, "other"), ""},
		{secret("garden-other", "credentials"), ""},
	} {
		_, response := w.ask("sync-provider-secret-labels", request{obj: test.obj})
		if !response.Allowed || string(response.Patch) != test.want || (response.PatchType == nil) != (test.want == "") {
			t.Errorf("%s: %v, patch %s", test.obj.GetName(), response.Result, response.Patch)
		}
	}
}

func TestResourceSize(t *testing.T) {
	limits := &admissionconfig.ResourceAdmissionConfiguration{
		Limits: []admissionconfig.ResourceLimit{
			{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}, Size: ptr.To(resource.MustParse("200"))},
			{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"namespaces"}, Count: ptr.To[int64](2)},
		},
		UnrestrictedSubjects: []rbacv1.Subject{
			{Kind: "User", Name: "root"}, {Kind: "Group", Name: "roots"}, {Kind: "ServiceAccount", Namespace: "garden", Name: "*"}},
	}
	large := secret(project, "s", "data", strings.Repeat("x", 200))
	large.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	managed := secret(project, "s", "data", "x")
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("x", 200)}}
	namespace := &corev1.Namespace{ObjectMeta: meta("", "n")}
	as := func(name string, groups ...string) authenticationv1.UserInfo {
		return authenticationv1.UserInfo{Username: name, Groups: groups}
	}
	two := []client.Object{&corev1.Namespace{ObjectMeta: meta("", "a")}, &corev1.Namespace{ObjectMeta: meta("", "b")}}
	for name, test := range map[string]struct {
		objects []client.Object
		request request
		want    string
	}{
		"too large":                  {nil, request{obj: large}, "maximum resource size exceeded! Size in request: "},
		"too large after an update":  {nil, request{old: managed, obj: large}, "maximum resource size exceeded!"},
		"small":                      {nil, request{obj: managed}, ""},
		"large, by a user":           {nil, request{obj: large, user: as("root")}, ""},
		"large, by a group":          {nil, request{obj: large, user: as("alice", "roots")}, ""},
		"large, by a ServiceAccount": {nil, request{obj: large, user: as("system:serviceaccount:garden:x")}, ""},
		"large, by another":          {nil, request{obj: large, user: as("system:serviceaccount:other:x", "roots")}, "maximum resource size"},
		"large, without a limit": {nil, request{obj: &corev1.ConfigMap{ObjectMeta: meta(project, "c"),
			Data: map[string]string{"a": strings.Repeat("x", 300)}}}, ""},
		"too many":                     {two, request{obj: namespace}, "maximum resource count exceeded! max allowed: 2"},
		"too many, but already there":  {two, request{old: namespace, obj: namespace}, ""},
		"as many as there are allowed": {two[:1], request{obj: namespace}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, limits, test.objects...)
			got, _ := w.ask("validate-resource-size", test.request)
			check(t, got, test.want)
			if counted := w.rejected["Size Exceeded"] + w.rejected["Count Exceeded"]; (counted == 1) != (test.want != "") {
				t.Errorf("counted as rejected: %v", w.rejected)
			}
		})
	}
	logs := limits.DeepCopy()
	logs.OperationMode = ptr.To(admissionconfig.AdmissionModeLog)
	got, _ := newWorld(t, logs).ask("validate-resource-size", request{obj: large})
	check(t, got, "")
	if _, ok := newWorld(t, nil).webhooks["validate-resource-size"]; ok {
		t.Error("there is a webhook without limits")
	}
}

func kindOf(obj client.Object) (gvk struct{ Group, Version, Kind string }, err error) {
	kinds, _, err := scheme.ObjectKinds(obj)
	if err == nil {
		gvk.Group, gvk.Version, gvk.Kind = kinds[0].Group, kinds[0].Version, kinds[0].Kind
	}
	return gvk, err
}
