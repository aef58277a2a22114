package process

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/apiclient/apitest"
)

// TestVariablesOfConfigMaps checks that the keys of ConfigMaps are limited as Linux limits variables, and take little time.
func TestVariablesOfConfigMaps(t *testing.T) {
	w := newWorld(t, "")
	api := apitest.New(t, w.clock)
	client, err := apiclient.New(apiclient.Credentials{Server: api.URL, CA: api.CA, Token: apitest.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	many := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "many", Namespace: "default"}, Data: map[string]string{}}
	for i := range 60000 {
		many.Data[fmt.Sprintf("k%x", i)] = ""
	}
	api.Put(t, "/api/v1/namespaces/default/configmaps/many", many)
	pod := newPod("p", corev1.RestartPolicyAlways)
	p := &Pod{runner: w.Runner, pod: pod, ctx: t.Context(), cfg: PodConfig{Client: func() *apiclient.Client { return client }}}
	c := &container{pod: p, spec: &pod.Spec.Containers[0]}
	for i := range 20 {
		c.spec.EnvFrom = append(c.spec.EnvFrom, corev1.EnvFromSource{Prefix: fmt.Sprintf("P%d_", i),
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "many"}}})
	}
	if variables, err := c.variables(t.Context()); !errors.Is(err, errConfig) {
		t.Errorf("%d variables, error %v", len(variables), err)
	}
	c.spec.EnvFrom = c.spec.EnvFrom[:1]
	if variables, err := c.variables(t.Context()); len(variables) != len(many.Data) || err != nil {
		t.Errorf("%d variables, error %v", len(variables), err)
	}
}
