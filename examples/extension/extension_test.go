package main

import (
	"context"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/pkg/testenv"
)

// TestExtension runs the controllers in this process, where a debugger reaches them, and creates a Shoot that needs both.
func TestExtension(t *testing.T) {
	env := testenv.Start(t, testenv.WithManifests("testdata/registration.yaml"))
	seed, err := env.Seed("local")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, seed) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	profile := &corev1beta1.NamespacedCloudProfile{}
	until(t, "the machine image is offered", func(ctx context.Context) error {
		return env.Client().Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: "example"}, profile)
	}, func() bool { return len(profile.Status.CloudProfileSpec.MachineImages) == 2 })

	// It is ready when its node has joined, which starts with the user data of example-os.
	env.CreateShoot(t, "mine", testenv.WithWorkers(1), testenv.WithChange(func(shoot *corev1beta1.Shoot) {
		shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "example"}
		shoot.Spec.Provider.Workers[0].Machine.Image = &corev1beta1.ShootMachineImage{Name: "example-os", Version: ptr.To("1.0.0")}
		shoot.Spec.Extensions = []corev1beta1.Extension{{Type: "example",
			ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"greeting": "Good morning"}`)}}}
	}))

	inSeed, err := client.New(seed, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key, greeting := client.ObjectKey{Namespace: "shoot--dev--mine", Name: "greeting"}, &corev1.ConfigMap{}
	if err := inSeed.Get(t.Context(), key, greeting); err != nil || greeting.Data["greeting"] != "Good morning" {
		t.Errorf("the greeting is %v: %v", greeting.Data, err)
	}
	first := greeting.Data["since"]
	shootKey, current := client.ObjectKey{Namespace: "garden-dev", Name: "mine"}, &corev1beta1.Shoot{}
	if err := env.Client().Get(t.Context(), shootKey, current); err != nil {
		t.Fatal(err)
	}
	before := current.DeepCopy()
	current.Spec.Extensions[0].ProviderConfig.Raw = []byte(`{"greeting": "Good night"}`)
	if err := env.Client().Patch(t.Context(), current, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	until(t, "the greeting changes", func(ctx context.Context) error { return inSeed.Get(ctx, key, greeting) },
		func() bool { return greeting.Data["greeting"] == "Good night" })
	if greeting.Data["since"] != first {
		t.Errorf("the state is lost: %s, and then %s", first, greeting.Data["since"])
	}

	confirm := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}`))
	if err := env.Client().Patch(t.Context(), current, confirm); err != nil {
		t.Fatal(err)
	}
	if err := env.Client().Delete(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	gone := false
	until(t, "the Shoot goes, with its greeting", func(ctx context.Context) error {
		err := env.Client().Get(ctx, shootKey, current)
		gone = apierrors.IsNotFound(err)
		return client.IgnoreNotFound(err)
	}, func() bool { return gone })
	if err := inSeed.Get(t.Context(), key, greeting); !apierrors.IsNotFound(err) {
		t.Errorf("the greeting is still there: %v", err)
	}
}

// until reads until a condition holds.
func until(t *testing.T, what string, read func(context.Context) error, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := read(ctx)
		return err == nil && holds(), err
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}
