package testenv_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/testutil"
	"github.com/gardenlite/gardenlite/pkg/testenv"
)

const (
	// shootPatience is how long a Shoot may take on a machine that is busy.
	shootPatience = 4 * time.Minute
	olderVersion  = "1.35.2"
)

// TestShoots uses every function of the package for Shoots, in one landscape with two seeds.
func TestShoots(t *testing.T) {
	expectClosed(t)
	env := testenv.Start(t, testenv.WithSeeds(2), testenv.WithReadyTimeout(4*time.Minute), testenv.WithDatastore("sqlite"))
	if testutil.Soaking() {
		t.Run("that are deleted", func(t *testing.T) { testShootsLeaveNothing(t, env) })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*shootPatience)
	defer cancel()
	failing := env.CreateShoot(t, "failing", testenv.WithoutWaiting(), testenv.WithChange(func(shoot *corev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "gardenlite.dev/fail", "always:ERR_INFRA_QUOTA_EXCEEDED no more networks")
	}))

	t.Run("with all options", func(t *testing.T) {
		shoot := env.CreateShoot(t, "all", testenv.InProject("dev"), testenv.WithWorkers(1),
			testenv.WithKubernetesVersion(olderVersion), testenv.OnSeed("local-2"))
		got, err := shoot.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status.SeedName == nil || *got.Status.SeedName != "local-2" || got.Spec.Kubernetes.Version != olderVersion ||
			len(got.Spec.Provider.Workers) != 1 || got.Spec.Provider.Workers[0].Minimum != 1 {
			t.Errorf("the Shoot is another one: %+v", got.Spec)
		}
		admin, viewer := clientFor(t, ctx, shoot.Config), clientFor(t, ctx, shoot.ViewerConfig)
		nodes, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 1 {
			t.Errorf("the nodes: %v, %v", nodes, err)
		}
		if _, err := admin.CoreV1().ConfigMaps("default").Create(
			ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := viewer.CoreV1().ConfigMaps("default").Get(ctx, "x", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if err := viewer.CoreV1().ConfigMaps("default").Delete(ctx, "x", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("a viewer deletes: %v", err)
		}
		if _, err := env.NewShoot(ctx, "all", testenv.WithWorkers(1), testenv.WithKubernetesVersion(olderVersion)); err != nil {
			t.Errorf("a Shoot that is there: %v", err)
		}
		if _, err := env.NewShoot(ctx, "all", testenv.WithWorkers(3)); err == nil || !strings.Contains(err.Error(), "maximum is 1, not 3") {
			t.Errorf("a Shoot that is there and is another one: %v", err)
		}

		patch(t, env, "all", `{"spec":{"hibernation":{"enabled":true}}}`)
		if err := shoot.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := shoot.Get(ctx); err != nil || !got.Status.IsHibernated {
			t.Errorf("after Wait the Shoot does not sleep: %v", err)
		}
		if _, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
			t.Error("the API server of a Shoot that sleeps answers")
		}
		for range 2 { // the second time it is gone
			if err := shoot.Delete(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := shoot.Get(ctx); err == nil || !strings.Contains(err.Error(), "dev/all does not exist") {
			t.Errorf("a Shoot that is gone: %v", err)
		}
	})
	t.Run("that fails", func(t *testing.T) {
		err := failing.Wait(ctx)
		for _, says := range []string{"dev/failing", "no more networks", "ERR_INFRA_QUOTA_EXCEEDED", "operation=retry"} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("Wait does not say %q: %v", says, err)
			}
		}
		if _, err := failing.Config(ctx); err == nil || !strings.Contains(err.Error(), "no more networks") {
			t.Errorf("Config of a Shoot that has failed: %v", err)
		}
	})
	t.Run("that cannot be", func(t *testing.T) {
		for says, opt := range map[string]testenv.ShootOption{
			`no project "unknown"`: testenv.InProject("unknown"), "kubernetes.version": testenv.WithKubernetesVersion("1.2.3"),
			"nowhere": testenv.OnSeed("nowhere"),
		} {
			if _, err := env.NewShoot(ctx, "wrong", opt); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%q is not in: %v", says, err)
			}
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		noSeed := testenv.WithChange(func(shoot *corev1beta1.Shoot) {
			shoot.Spec.SeedSelector = &corev1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"no": "seed"}}}
		})
		if _, err := env.NewShoot(short, "none", noSeed); err == nil || !strings.Contains(err.Error(), "dev/none") {
			t.Errorf("a Shoot that there is no time for: %v", err)
		}
	})
}

// patch changes a Shoot of the project dev.
func patch(t *testing.T, env *testenv.Env, name, change string) {
	t.Helper()
	shoots := dynamic.NewForConfigOrDie(env.Config()).Resource(
		schema.GroupVersionResource{Group: corev1beta1.GroupName, Version: "v1beta1", Resource: "shoots"})
	if _, err := shoots.Namespace("garden-dev").Patch(t.Context(), name, types.MergePatchType, []byte(change),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func clientFor(t *testing.T, ctx context.Context, config func(context.Context) (*rest.Config, error)) kubernetes.Interface {
	t.Helper()
	c, err := config(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(c)
}
