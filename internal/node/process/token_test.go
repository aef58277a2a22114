package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/apiclient/apitest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// A token is renewed when four fifths of its life are over, and not before.
func TestTokenIsRenewed(t *testing.T) {
	const life = 1000 * time.Second
	w := newWorld(t, "exec sleep 1000")
	api := apitest.New(t, w.clock)
	client, err := apiclient.New(apiclient.Credentials{Server: api.URL, CA: api.CA, Token: apitest.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	pod := newPod("p", corev1.RestartPolicyAlways)
	pod.Spec.ServiceAccountName = "default"
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Path: corev1.ServiceAccountTokenKey, ExpirationSeconds: ptr.To(int64(life / time.Second)),
		}}},
	}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: serviceAccountPath}}
	begin := w.clock.Now()
	p := w.NewPod(PodConfig{
		Node: "node", APIServer: api.URL, CA: api.CA, Client: func() *apiclient.Client { return client },
		Changed: func() {}, Event: func(_, _, _, _ string) {},
	}, pod)
	until(t, p, "running", runs)
	token := func() string {
		data, err := os.ReadFile(filepath.Join(p.volumeDir("v"), corev1.ServiceAccountTokenKey))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := token()
	testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
		w.clock.Step(10 * time.Second)
		if token() == first {
			return fmt.Errorf("the token is the first one after %s", w.clock.Since(begin))
		}
		return nil
	})
	if took := w.clock.Since(begin); took < life*4/5 || took >= life {
		t.Errorf("the token was renewed after %s", took)
	}
}
