package gardenapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestWebhooks checks that the webhooks of Gardener's admission controller answer the administrator, each once: what they
// decide on is in internal/authz/gardenwebhooks.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	namespace := prepareProject(t, "hooks")
	var shoot *unstructured.Unstructured
	for _, obj := range validObjects(t, "hooks") {
		made, err := client(obj, infoOf(t, obj.GetKind())).Create(t.Context(), obj, created)
		must(t, err)
		if made.GetKind() == "Shoot" {
			shoot = made
		}
	}
	refused := func(webhook, reason string, err error) {
		t.Helper()
		prefix := `admission webhook "` + webhook + `.gardener.cloud" denied the request: `
		if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s answers %v, want %q", webhook, err, reason)
		}
	}
	secrets, configMaps := kube.CoreV1().Secrets(namespace), kube.CoreV1().ConfigMaps(namespace)
	patch := func(value any) []byte {
		data, err := json.Marshal(value)
		must(t, err)
		return data
	}
	patchShoot := func(kubeAPIServer map[string]any) error {
		_, err := client(shoot, infoOf(t, "Shoot")).Patch(t.Context(), shoot.GetName(), types.MergePatchType, patch(map[string]any{
			"spec": map[string]any{"kubernetes": map[string]any{"kubeAPIServer": kubeAPIServer}}}), metav1.PatchOptions{})
		return err
	}

	err := kube.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{})
	refused("validate-namespace-deletion", `you must delete the corresponding project "hooks"`, err)
	if !apierrors.IsForbidden(err) {
		t.Errorf("the deletion of the namespace is refused with %v", err)
	}

	_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kubeconfig"}, StringData: map[string]string{
		"kubeconfig": `{"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {"exec": {"command": "id"}}}]}`}}, created)
	refused("validate-kubeconfig-secrets", "exec configurations are not supported", err)

	policy := map[string]any{"auditConfig": map[string]any{"auditPolicy": map[string]any{"configMapRef": map[string]any{"name": "policy"}}}}
	refusedPolicy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "policy"}, Data: map[string]string{"policy": "{}"}}
	_, err = configMaps.Create(t.Context(), refusedPolicy, created)
	must(t, err)
	refused("audit-policies", "failed to decode the provided audit policy", patchShoot(policy))
	validPolicy := refusedPolicy.DeepCopy()
	validPolicy.Data["policy"] = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}`
	_, err = configMaps.Update(t.Context(), validPolicy, metav1.UpdateOptions{})
	must(t, err)
	must(t, patchShoot(policy))
	err = refusal(t, func() error {
		_, err := configMaps.Update(t.Context(), refusedPolicy, metav1.UpdateOptions{})
		return err
	}, func() error {
		_, err := configMaps.Update(t.Context(), validPolicy, metav1.UpdateOptions{})
		return err
	})
	refused("audit-policies", "failed to decode the provided audit policy", err)

	_, err = configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"},
		Data: map[string]string{"config.yaml": "{}"}}, created)
	must(t, err)
	refused("authentication-configuration", "failed to decode the provided authentication configuration",
		patchShoot(map[string]any{"structuredAuthentication": map[string]any{"configMapName": "config"}}))
	_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "authorizer"},
		StringData: map[string]string{"kubeconfig": `{"apiVersion": "v1", "kind": "Config"}`}}, created)
	must(t, err)
	authorization := func(configMap string) map[string]any {
		return map[string]any{"structuredAuthorization": map[string]any{"configMapName": configMap,
			"kubeconfigs": []any{map[string]any{"authorizerName": "hook", "secretName": "authorizer"}}}}
	}
	refused("authorization-configuration", "failed to decode the provided authorization configuration", patchShoot(authorization("config")))
	_, err = configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "authorization"}, Data: map[string]string{
		"config.yaml": `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthorizationConfiguration", "authorizers": [{
			"type": "Webhook", "name": "hook", "webhook": {"timeout": "3s", "subjectAccessReviewVersion": "v1", "authorizedTTL": "30s",
			"unauthorizedTTL": "30s", "matchConditionSubjectAccessReviewVersion": "v1", "failurePolicy": "Deny"}}]}`}}, created)
	must(t, err)
	must(t, patchShoot(authorization("authorization")))
	patchAuthorizer := func(change map[string]any) func() error {
		return func() error {
			_, err := secrets.Patch(t.Context(), "authorizer", types.MergePatchType, patch(change), metav1.PatchOptions{})
			return err
		}
	}
	err = refusal(t, patchAuthorizer(map[string]any{"data": map[string]any{"kubeconfig": nil}}),
		patchAuthorizer(map[string]any{"stringData": map[string]any{"kubeconfig": `{"apiVersion": "v1", "kind": "Config"}`}}))
	refused("shoot-kubeconfig-secret-ref", "secret is in use by shoots: ["+shoot.GetName()+"]", err)

	restricted := map[string]string{"gardener.cloud/update-restriction": "true"}
	_, err = configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "restricted", Labels: restricted}}, created)
	refused("update-restriction", `user "gardenlite:admin" is not allowed to CREATE system configmaps`, err)

	_, err = kube.CoreV1().Secrets("garden").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hooks-domain",
		Labels: map[string]string{"role": "internal-domain"}}}, created)
	refused("internal-domain-secret", "domain secret has no annotations", err)

	other := map[string]any{"provider.shoot.gardener.cloud/other": "true"}
	secret, err := secrets.Patch(t.Context(), "credentials", types.MergePatchType,
		patch(map[string]any{"metadata": map[string]any{"labels": other}}), metav1.PatchOptions{})
	must(t, err)
	if secret.Labels["provider.shoot.gardener.cloud/local"] != "true" || secret.Labels["provider.shoot.gardener.cloud/other"] != "" {
		t.Errorf("the Secret to which a binding refers has the labels %v", secret.Labels)
	}
}

// TestTokenSecrets checks that who may write Secrets gets a token of a ServiceAccount by one only with the permission to
// create tokens.
func TestTokenSecrets(t *testing.T) {
	t.Parallel()
	const namespace = "e2e-token-secrets"
	createNamespace(t, namespace, nil)
	for _, name := range []string{"writer", "robot"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, created)
		must(t, err)
	}
	allow := func(name string, rule rbacv1.PolicyRule) {
		t.Helper()
		meta := metav1.ObjectMeta{Name: name}
		_, err := kube.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, created)
		must(t, err)
		_, err = kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "writer"}}}, created)
		must(t, err)
	}
	allow("secrets", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
	token, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "writer", &authenticationv1.TokenRequest{}, created)
	must(t, err)
	writerConfig := rest.AnonymousClientConfig(config)
	writerConfig.BearerToken = token.Status.Token
	writer := kubernetes.NewForConfigOrDie(writerConfig).CoreV1().Secrets(namespace)
	tokenOf := func(account string) *corev1.Secret {
		return &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{Name: "token",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account}}}
	}
	eventually(t, waitTimeout, func(ctx context.Context) error { // until RBAC knows the role
		_, err := writer.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, created)
		return err
	})
	eventually(t, waitTimeout, func(ctx context.Context) error { // until the API server knows the policy
		_, err := writer.Create(ctx, tokenOf("robot"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("it may be written")
		}
		return nil
	})
	const says = "the Secret gets a token of ServiceAccount robot, and you may not create one"
	_, err = writer.Create(t.Context(), tokenOf("robot"), created)
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a Secret with a token: %v", err)
	}
	_, err = kube.CoreV1().Secrets(namespace).Create(t.Context(), tokenOf("writer"), created)
	must(t, err)
	patch := []byte(`{"metadata":{"annotations":{"kubernetes.io/service-account.name":"robot"}}}`)
	_, err = writer.Patch(t.Context(), "token", types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a Secret with another's token: %v", err)
	}
	_, err = writer.Patch(t.Context(), "token", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, writer.Delete(t.Context(), "token", metav1.DeleteOptions{}))
	allow("tokens", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}})
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := writer.Create(ctx, tokenOf("robot"), created)
		return err
	})
}

// refusal returns the error of a change. While the webhook has not seen yet that a Shoot uses the object, as in Gardener a moment later,
// the change is undone and tried again.
func refusal(t *testing.T, change, undo func() error) (refused error) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		if refused = change(); refused != nil {
			return nil
		}
		must(t, undo())
		return errors.New("it is not refused")
	})
	return refused
}
