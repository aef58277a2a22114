package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationv1client "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/authz/gardenwebhooks"
	"github.com/gardenlite/gardenlite/internal/authz/restriction"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
	"github.com/gardenlite/gardenlite/internal/authz/webhook"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	// ConfigurationName is the name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration.
	ConfigurationName = "gardener-admission-controller"
	// ServiceName is the name of the Service in the namespace garden under which the API server finds webhooks that are
	// installed without an address.
	ServiceName     = "gardener-admission-controller"
	restrictionName = "seed-restriction.gardener.cloud"

	// authorizationTimeout and admissionTimeout are how long the API server waits for an answer (the latter in
	// seconds). What is not answered is not allowed, also if the machine is just busy.
	authorizationTimeout = 10 * time.Second
	admissionTimeout     = 10
)

// Client is the connection of an API server to the webhooks: with a client certificate in files, which the API server
// reloads when they change.
type Client struct {
	// URL consists of scheme, host and port.
	URL               string
	CAPEM             []byte
	CertFile, KeyFile string
}

// The names of the files for the API server.
const (
	authorizationFile           = "authorization.yaml"
	authorizationKubeconfigFile = "authorization.kubeconfig"
	admissionFile               = "admission.yaml"
	admissionKubeconfigFile     = "admission.kubeconfig"
)

// WriteFiles writes the files for a kube-apiserver to a folder, readable only by the owner, and returns the flags with
// them.
func (c Client) WriteFiles(folder string) (args []string, err error) {
	host, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("the address of the webhooks: %w", err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for the files of the webhooks: %w", err)
	}
	file := func(name string) string { return filepath.Join(folder, name) }
	for name, object := range map[string]any{
		authorizationFile:           authorizationConfiguration(file(authorizationKubeconfigFile)),
		authorizationKubeconfigFile: c.kubeconfig(c.URL+webhook.AuthorizationPath, "webhook"),
		admissionFile:               admissionConfiguration(file(admissionKubeconfigFile)),
		// For admission, the API server looks up the user by the host and port of the webhook, or by the name of its
		// Service.
		admissionKubeconfigFile: c.kubeconfig(c.URL, host.Host, ServiceName+"."+constants.GardenNamespace+".svc"),
	} {
		var data []byte
		if kubeconfig, ok := object.(clientcmdapi.Config); ok {
			data, err = clientcmd.Write(kubeconfig)
		} else {
			data, err = yaml.Marshal(object)
		}
		if err == nil {
			err = fsutil.WriteFile(file(name), data, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return []string{"--authorization-config=" + file(authorizationFile), "--admission-control-config-file=" + file(admissionFile)}, nil
}

func (c Client) kubeconfig(server string, users ...string) clientcmdapi.Config {
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"webhook": {Server: server, CertificateAuthorityData: c.CAPEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{},
		Contexts:       map[string]*clientcmdapi.Context{"webhook": {Cluster: "webhook", AuthInfo: users[0]}},
		CurrentContext: "webhook",
	}
	for _, user := range users {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificate: c.CertFile, ClientKey: c.KeyFile}
	}
	return config
}

// authorizationConfiguration returns a configuration with RBAC, Node and then the webhook. The webhook's answers are
// not cached, because an object may move to another seed at any time. The API server calls the webhook for gardenlets
// and extensions only, and has no opinion if the call fails.
func authorizationConfiguration(kubeconfig string) map[string]any {
	return map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "AuthorizationConfiguration",
		"authorizers": []any{
			map[string]any{"type": "RBAC", "name": "rbac"},
			map[string]any{"type": "Node", "name": "node"},
			map[string]any{"type": "Webhook", "name": "seed-authorizer", "webhook": map[string]any{
				"cacheAuthorizedRequests":                  false,
				"cacheUnauthorizedRequests":                false,
				"authorizedTTL":                            "1s", // required although nothing is cached
				"unauthorizedTTL":                          "1s",
				"timeout":                                  authorizationTimeout.String(),
				"subjectAccessReviewVersion":               "v1",
				"matchConditionSubjectAccessReviewVersion": "v1",
				"failurePolicy":                            "NoOpinion",
				"connectionInfo":                           map[string]any{"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
				"matchConditions": []any{
					map[string]any{"expression": seedidentity.Condition("request.user", "request.groups")}},
			}},
		},
	}
}

func admissionConfiguration(kubeconfig string) map[string]any {
	configuration := map[string]any{
		"apiVersion":     "apiserver.config.k8s.io/v1",
		"kind":           "WebhookAdmissionConfiguration",
		"kubeConfigFile": kubeconfig,
	}
	return map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "AdmissionConfiguration",
		"plugins": []any{
			map[string]any{"name": "ValidatingAdmissionWebhook", "configuration": configuration},
			map[string]any{"name": "MutatingAdmissionWebhook", "configuration": configuration},
		},
	}
}

// Install writes the configurations of webhooks at the address, whose certificate has the given authority. Without an
// address, they are for those of the Service, so that each of several API servers finds its own. The installer needs more
// permissions than the controller: such configurations give access to all objects that are written.
func Install(ctx context.Context, installer *rest.Config, address string, caPEM []byte, limits *Limits) error {
	client, err := admissionregistrationv1client.NewForConfig(installer)
	if err != nil {
		return fmt.Errorf("making the client that installs the admission webhooks: %w", err)
	}
	validating, mutating := Configurations(address, caPEM, limits)
	// The configurations protect the garden, so changes of them are reverted.
	return errors.Join(
		install(ctx, client.ValidatingWebhookConfigurations(), validating,
			func(current *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
				return apiequality.Semantic.DeepEqual(current.Webhooks, validating.Webhooks)
			}),
		install(ctx, client.MutatingWebhookConfigurations(), mutating,
			func(current *admissionregistrationv1.MutatingWebhookConfiguration) bool {
				return apiequality.Semantic.DeepEqual(current.Webhooks, mutating.Webhooks)
			}))
}

// writer writes objects of a type.
type writer[T metav1.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Create(ctx context.Context, obj T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error)
}

// install writes an object unless it is the same already.
func install[T metav1.Object](ctx context.Context, client writer[T], wanted T, same func(current T) bool) error {
	current, err := client.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
	} else if err == nil && !same(current) {
		wanted.SetResourceVersion(current.GetResourceVersion())
		_, err = client.Update(ctx, wanted, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("installing the admission webhooks: %w", err)
	}
	return nil
}

// allowCounting gives User the permission to list the cluster-scoped resources whose number is limited.
func allowCounting(ctx context.Context, installer *rest.Config, limits *Limits) error {
	rules := gardenwebhooks.CountRules(limits)
	if len(rules) == 0 {
		return nil
	}
	client, err := rbacv1client.NewForConfig(installer)
	if err != nil {
		return fmt.Errorf("making the client that installs the admission webhooks: %w", err)
	}
	const name = User + ":limits"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: User}},
	}
	return errors.Join(
		install(ctx, client.ClusterRoles(), role, func(current *rbacv1.ClusterRole) bool {
			return apiequality.Semantic.DeepEqual(current.Rules, rules)
		}),
		install(ctx, client.ClusterRoleBindings(), binding, func(*rbacv1.ClusterRoleBinding) bool { return true }))
}

// Configurations returns the configurations of the webhooks; see Install.
func Configurations(address string, caPEM []byte, limits *Limits) (
	*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfiguration) {
	clientConfig := func(path string) admissionregistrationv1.WebhookClientConfig {
		client := admissionregistrationv1.WebhookClientConfig{CABundle: caPEM}
		if address == "" {
			client.Service = &admissionregistrationv1.ServiceReference{Namespace: constants.GardenNamespace, Name: ServiceName,
				Path: &path,
				Port: ptr.To[int32](443), // the default; without it, each start would write the configuration again
			}
		} else {
			client.URL = ptr.To(address + path)
		}
		return client
	}
	selector := func(s *metav1.LabelSelector) *metav1.LabelSelector {
		if s == nil {
			return &metav1.LabelSelector{} // the default
		}
		return s
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    restrictionName,
			ClientConfig:            clientConfig(webhook.RestrictionPath),
			Rules:                   restriction.Rules(),
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](admissionTimeout),
			NamespaceSelector:       &metav1.LabelSelector{},
			ObjectSelector:          &metav1.LabelSelector{},
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions:         restriction.MatchConditions(),
		}},
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}}
	for _, w := range gardenwebhooks.All(nil, nil, limits, nil) {
		if w.Mutating {
			mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name: w.Name, ClientConfig: clientConfig(w.Path), Rules: w.Rules,
				NamespaceSelector: selector(w.NamespaceSelector), ObjectSelector: selector(w.ObjectSelector),
				FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
				SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: ptr.To[int32](admissionTimeout),
				AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
			})
			continue
		}
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: clientConfig(w.Path), Rules: w.Rules,
			NamespaceSelector: selector(w.NamespaceSelector), ObjectSelector: selector(w.ObjectSelector),
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: ptr.To[int32](admissionTimeout),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return validating, mutating
}
