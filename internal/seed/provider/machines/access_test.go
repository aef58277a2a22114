package machines

import (
	"errors"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestKubeconfigWithToken: a shoot of Gardener's gardenlet has a token and a CA in two Secrets, and no kubeconfig.
func TestKubeconfigWithToken(t *testing.T) {
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(corev1.AddToScheme, extensionsv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secret := func(name, key, value string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Data: map[string][]byte{key: []byte(value)}}
	}
	access := secret("shoot-access-machine-controller-manager", "token", "t")
	generic := secret("generic", KubeconfigKey, `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {certificate-authority-data: Y2E=}}]}`)
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a",
		Annotations: map[string]string{constants.AnnotationKeyGenericTokenKubeconfigSecretName: "generic"}}}
	for name, test := range map[string]struct {
		objects []client.Object
		server  string
		// err is in the error, and noAccess says that the shoot has none yet.
		err      string
		noAccess bool
	}{
		"all":              {[]client.Object{access, generic, cluster}, "https://x:1", "", false},
		"nothing":          {nil, "https://x:1", "Secret a/machine-controller-manager is not there", true},
		"an empty token":   {[]client.Object{secret(access.GetName(), "token", ""), generic, cluster}, "https://x:1", "has no token yet", true},
		"no API server":    {[]client.Object{access, generic, cluster}, "", "does not run", true},
		"no Cluster":       {[]client.Object{access, generic}, "https://x:1", "reading the Cluster a", false},
		"no CA":            {[]client.Object{access, cluster}, "https://x:1", "a/generic", false},
		"a bad kubeconfig": {[]client.Object{access, secret("generic", KubeconfigKey, "["), cluster}, "https://x:1", "has no kubeconfig", false},
		"no cluster":       {[]client.Object{access, secret("generic", KubeconfigKey, "kind: Config"), cluster}, "https://x:1", "has no cluster", false},
	} {
		s := &Shoots{Seed: fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.objects...).Build(),
			APIServer: func(string) string { return test.server }}
		data, err := s.kubeconfig(t.Context(), "a")
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || errors.Is(err, errNoAccess) != test.noAccess {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		config, loadErr := clientcmd.RESTConfigFromKubeConfig(data)
		if err != nil || loadErr != nil || config.Host != test.server || config.BearerToken != "t" || string(config.CAData) != "ca" {
			t.Errorf("%s: %+v, %v, %v", name, config, err, loadErr)
		}
	}
}
