package server

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/config"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/authz/restriction"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
	"github.com/gardenlite/gardenlite/internal/authz/webhook"
)

// written returns a folder with the files for an API server.
func written(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	client := Client{URL: "https://127.0.0.1:4711", CAPEM: []byte("authority"), CertFile: "/pki/client.crt", KeyFile: "/pki/client.key"}
	args, err := client.WriteFiles(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"--authorization-config=" + filepath.Join(folder, authorizationFile),
		"--admission-control-config-file=" + filepath.Join(folder, admissionFile)}; !slices.Equal(args, want) {
		t.Errorf("flags %q, want %q", args, want)
	}
	return folder
}

// TestAuthorizationFile loads and validates the file with the functions of the API server, which does not start if they
// fail.
func TestAuthorizationFile(t *testing.T) {
	folder := written(t)
	configuration, err := load.LoadFromFile(filepath.Join(folder, authorizationFile))
	if err != nil {
		t.Fatal(err)
	}
	known, once := sets.New("Node", "RBAC", "Webhook", "AlwaysAllow", "AlwaysDeny", "ABAC"), sets.New("Webhook")
	if errs := validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), field.NewPath("file"),
		configuration, known, once); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	var types []string
	for _, authorizer := range configuration.Authorizers {
		types = append(types, string(authorizer.Type))
	}
	if len(types) != 3 || types[0] != "RBAC" || types[1] != "Node" || types[2] != "Webhook" {
		t.Errorf("the order is %v", types)
	}
	hook := configuration.Authorizers[2].Webhook
	if hook.CacheAuthorizedRequests || hook.CacheUnauthorizedRequests {
		t.Error("answers are remembered")
	}
	if hook.FailurePolicy != apiserverapi.FailurePolicyNoOpinion {
		t.Errorf("failure policy %s", hook.FailurePolicy)
	}
	client, err := clientcmd.LoadFromFile(*hook.ConnectionInfo.KubeConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	current := client.Contexts[client.CurrentContext]
	cluster, as := client.Clusters[current.Cluster], client.AuthInfos[current.AuthInfo]
	if cluster.Server != "https://127.0.0.1:4711"+webhook.AuthorizationPath ||
		string(cluster.CertificateAuthorityData) != "authority" || cluster.InsecureSkipTLSVerify {
		t.Errorf("cluster: %v", cluster)
	}
	if as.ClientCertificate != "/pki/client.crt" || as.ClientKey != "/pki/client.key" {
		t.Errorf("user: %v", as)
	}
}

func TestAdmissionFile(t *testing.T) {
	folder := written(t)
	scheme := runtime.NewScheme()
	apiserverinstall.Install(scheme)
	provider, err := admission.ReadAdmissionConfiguration([]string{"ValidatingAdmissionWebhook"}, filepath.Join(folder, admissionFile), scheme)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := provider.ConfigFor("ValidatingAdmissionWebhook")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := config.LoadConfig(reader)
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientcmd.LoadFromFile(kubeconfig.KubeConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	// The API server looks the user up by the host of the webhook's address.
	if user := client.AuthInfos["127.0.0.1:4711"]; user == nil || user.ClientCertificate != "/pki/client.crt" ||
		user.ClientKey != "/pki/client.key" {
		t.Errorf("users: %v", client.AuthInfos)
	}
}

func TestFilesNeedAnAddress(t *testing.T) {
	if _, err := (Client{URL: "https://a b"}).WriteFiles(t.TempDir()); err == nil {
		t.Error("accepted")
	}
}

// person is a user of a request to the API server.
type person struct {
	name   string
	groups []string
	asked  bool // whether the API server calls the webhook
}

func persons() []person {
	const seeds, accounts, authenticated = "gardener.cloud:system:seeds", "system:serviceaccounts", "system:authenticated"
	of := func(namespace string) []string {
		return []string{accounts, accounts + ":" + namespace, authenticated}
	}
	return []person{
		// Users with an identity.
		{"gardener.cloud:system:seed:a", []string{seeds}, true},
		{"gardener.cloud:system:seed:a", []string{seeds, authenticated}, true},
		{"gardener.cloud:system:seed:a", []string{authenticated, "x", seeds}, true},
		{"gardener.cloud:system:seed:a.b-c.d", []string{seeds}, true},
		{"gardener.cloud:system:seed:a", append(of("seed-b"), seeds), true},
		{"system:serviceaccount:seed-a:extension-x", of("seed-a"), true},
		{"system:serviceaccount:seed-a:extension-provider-local", append(of("seed-a"), "x"), true},
		{"system:serviceaccount:seed-a-b:extension-x", of("seed-a-b"), true},
		// Users who only seem to have an identity, which the webhook refuses.
		{"gardener.cloud:system:seed:<ambiguous>", []string{seeds}, true},
		{"admin", []string{seeds, "system:masters"}, true},
		{"", []string{seeds}, true},
		{"system:serviceaccount:seed-a:default", of("seed-a"), true},
		{"system:serviceaccount:seed-a:extension-x", of("seed-b"), true},
		// All other users.
		{"admin", []string{"system:masters", authenticated}, false},
		{"gardener.cloud:system:seed:a", []string{authenticated}, false},
		{"gardener.cloud:system:seed:a", nil, false},
		{"", nil, false},
		{"system:anonymous", []string{"system:unauthenticated"}, false},
		{"system:serviceaccount:garden:extension-x", of("garden"), false},
		{"system:serviceaccount:garden:seed-a", of("garden"), false},
		{"system:serviceaccount:seed-a:extension-x", []string{authenticated}, false},
		{"system:kube-controller-manager", []string{authenticated}, false},
		{"system:node:a", []string{"system:nodes", authenticated}, false},
		{"gardener.cloud:system:seeds", []string{"gardener.cloud:system:seeds:", authenticated}, false},
	}
}

// TestConditions checks that both conditions are true for every user with an identity, false for users without a need
// for the webhook, and never fail.
func TestConditions(t *testing.T) {
	asksAuthorizer, asksRestriction := authorizationCondition(t), restrictionCondition(t)
	for _, p := range persons() {
		known := seedidentity.Of(p.name, p.groups).Type != seedidentity.None
		if known && !p.asked {
			t.Fatalf("%q of %v must be asked about", p.name, p.groups)
		}
		if got := asksAuthorizer(p); got != p.asked {
			t.Errorf("authorization of %q of %v: asked %t, want %t", p.name, p.groups, got, p.asked)
		}
		if got := asksRestriction(p); got != p.asked {
			t.Errorf("admission of %q of %v: asked %t, want %t", p.name, p.groups, got, p.asked)
		}
	}
}

// authorizationCondition evaluates the condition in the file like the API server.
func authorizationCondition(t *testing.T) func(person) bool {
	t.Helper()
	configuration, err := load.LoadFromFile(filepath.Join(written(t), authorizationFile))
	if err != nil {
		t.Fatal(err)
	}
	matcher, errs := validation.ValidateAndCompileMatchConditions(authorizationcel.NewDefaultCompiler(),
		configuration.Authorizers[2].Webhook.MatchConditions)
	if len(errs) > 0 || matcher == nil {
		t.Fatal(errs.ToAggregate())
	}
	return func(p person) bool {
		asked := false
		for _, spec := range []authorizationv1.SubjectAccessReviewSpec{
			{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets"}},
			{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/"}},
		} {
			spec.User, spec.Groups = p.name, p.groups
			matches, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec})
			if err != nil {
				t.Errorf("%q of %v: %v", p.name, p.groups, err)
			}
			asked = matches
		}
		return asked
	}
}

// restrictionCondition evaluates the condition in the ValidatingWebhookConfiguration like the API server.
func restrictionCondition(t *testing.T) func(person) bool {
	t.Helper()
	validating, _ := Configurations("https://127.0.0.1:4711", []byte("authority"), nil)
	hook := validating.Webhooks[0]
	var expressions []plugincel.ExpressionAccessor
	for _, c := range hook.MatchConditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	compiler := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	evaluator := compiler.CompileCondition(expressions, plugincel.OptionalVariableDeclarations{HasAuthorizer: true},
		environment.NewExpressions)
	matcher := matchconditions.NewMatcher(evaluator, hook.FailurePolicy, "webhook", "validating", hook.Name)
	return func(p person) bool {
		kind, resource := metav1.SchemeGroupVersion.WithKind("Secret"), metav1.SchemeGroupVersion.WithResource("secrets")
		object := &metav1.PartialObjectMetadata{}
		attributes := admission.NewAttributesRecord(object, nil, kind, "garden", "x", resource, "", admission.Create, nil, false,
			&user.DefaultInfo{Name: p.name, Groups: p.groups})
		result := matcher.Match(context.Background(),
			&admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: object}, nil, nil)
		if result.Error != nil {
			t.Errorf("%q of %v: %v", p.name, p.groups, result.Error)
		}
		return result.Matches
	}
}

// TestConfiguration checks that the configuration has the rules of the restriction, and the address and authority.
func TestConfiguration(t *testing.T) {
	validating, _ := Configurations("https://127.0.0.1:4711", []byte("authority"), nil)
	hook := validating.Webhooks[0]
	if *hook.ClientConfig.URL != "https://127.0.0.1:4711"+webhook.RestrictionPath || string(hook.ClientConfig.CABundle) != "authority" {
		t.Errorf("client: %v", hook.ClientConfig)
	}
	if *hook.FailurePolicy != admissionregistrationv1.Fail || *hook.MatchPolicy != admissionregistrationv1.Equivalent ||
		*hook.SideEffects != admissionregistrationv1.SideEffectClassNone {
		t.Errorf("policies: %s, %s, %s", *hook.FailurePolicy, *hook.MatchPolicy, *hook.SideEffects)
	}
	if len(hook.Rules) != len(restriction.Rules()) ||
		len(hook.NamespaceSelector.MatchLabels)+len(hook.NamespaceSelector.MatchExpressions) > 0 {
		t.Errorf("rules: %v", hook.Rules)
	}
	// The rules must have DELETE for every kind in deletable.
	for resource := range deletable {
		found := false
		for _, rule := range hook.Rules {
			found = found || rule.Operations[0] == admissionregistrationv1.Delete && rule.APIGroups[0] == resource.Group &&
				rule.Resources[0] == resource.Resource
		}
		if !found {
			t.Errorf("DELETE of %s is not looked at", resource)
		}
	}
}

// TestConfigurations checks that the configurations have the webhooks that Gardener v1.150 has in
// pkg/component/gardener/admissioncontroller/webhooks.go, except those for self-hosted Shoots, and that each fails closed.
func TestConfigurations(t *testing.T) {
	validating, mutating := Configurations("", []byte("authority"), &Limits{})
	paths := map[string]string{}
	for _, w := range validating.Webhooks {
		paths[w.Name] = *w.ClientConfig.Service.Path
		if *w.FailurePolicy != admissionregistrationv1.Fail || *w.TimeoutSeconds != 10 {
			t.Errorf("%s: %s after %d seconds", w.Name, *w.FailurePolicy, *w.TimeoutSeconds)
		}
	}
	for _, w := range mutating.Webhooks {
		paths[w.Name] = *w.ClientConfig.Service.Path
		if *w.FailurePolicy != admissionregistrationv1.Fail || *w.TimeoutSeconds != 10 {
			t.Errorf("%s: %s after %d seconds", w.Name, *w.FailurePolicy, *w.TimeoutSeconds)
		}
	}
	want := map[string]string{
		"validate-namespace-deletion.gardener.cloud":  "/webhooks/validate-namespace-deletion",
		"validate-kubeconfig-secrets.gardener.cloud":  "/webhooks/validate-kubeconfig-secrets",
		"internal-domain-secret.gardener.cloud":       "/webhooks/admission/validate-internal-domain",
		"audit-policies.gardener.cloud":               "/webhooks/audit-policies",
		"authentication-configuration.gardener.cloud": "/webhooks/authentication-configuration",
		"authorization-configuration.gardener.cloud":  "/webhooks/authorization-configuration",
		"shoot-kubeconfig-secret-ref.gardener.cloud":  "/webhooks/validate-shoot-kubeconfig-secret-ref",
		"update-restriction.gardener.cloud":           "/webhooks/update-restriction",
		"validate-resource-size.gardener.cloud":       "/webhooks/validate-resource-size",
		"seed-restriction.gardener.cloud":             "/webhooks/admission/seedrestriction",
		"sync-provider-secret-labels.gardener.cloud":  "/webhooks/sync-provider-secret-labels",
	}
	if !maps.Equal(paths, want) {
		t.Errorf("the webhooks are %v", paths)
	}
}

// TestInstall checks that Install overwrites an existing configuration only if it differs.
func TestInstall(t *testing.T) {
	client := fake.NewClientset()
	configurations := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	wanted := func() *admissionregistrationv1.ValidatingWebhookConfiguration {
		validating, _ := Configurations("https://127.0.0.1:4711", []byte("authority"), nil)
		return validating
	}
	for _, step := range []struct {
		name   string
		before func(*admissionregistrationv1.ValidatingWebhookConfiguration)
		writes []string
	}{
		{"first", nil, []string{"create"}},
		{"again", nil, nil},
		{"weakened", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks = nil }, []string{"update"}},
	} {
		if step.before != nil {
			current, err := configurations.Get(t.Context(), ConfigurationName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			step.before(current)
			if _, err := configurations.Update(t.Context(), current, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		client.ClearActions()
		same := func(current *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
			return apiequality.Semantic.DeepEqual(current.Webhooks, wanted().Webhooks)
		}
		if err := install(t.Context(), configurations, wanted(), same); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var writes []string
		for _, action := range client.Actions() {
			if verb := action.GetVerb(); verb != "get" {
				writes = append(writes, verb)
			}
		}
		if !slices.Equal(writes, step.writes) {
			t.Errorf("%s: writes %v, want %v", step.name, writes, step.writes)
		}
		if current, err := configurations.Get(t.Context(), ConfigurationName, metav1.GetOptions{}); err != nil ||
			!apiequality.Semantic.DeepEqual(current.Webhooks, wanted().Webhooks) {
			t.Errorf("%s: %v, %v", step.name, current, err)
		}
	}
}
