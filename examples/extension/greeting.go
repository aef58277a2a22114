package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// greeting keeps a ConfigMap in the namespace of each Shoot with an Extension of the type example. Its text is the greeting of
// the provider configuration, and its state, which moves with the Shoot to another seed, the time of the first greeting.
type greeting struct{ client.Client }

// config is the provider configuration of an Extension.
type config struct {
	Greeting string `json:"greeting"`
}

// state is what another seed needs to go on.
type state struct {
	Since time.Time `json:"since"`
}

func (g greeting) reconcile(ctx context.Context, obj *extensionsv1alpha1.Extension) error {
	wanted := config{Greeting: "Hello"}
	if raw := obj.Spec.ProviderConfig; raw != nil {
		if err := json.Unmarshal(raw.Raw, &wanted); err != nil {
			return fmt.Errorf("reading spec.providerConfig: %w", err)
		}
	}
	now := state{Since: time.Now().UTC().Truncate(time.Second)}
	if raw := obj.Status.State; raw != nil {
		if err := json.Unmarshal(raw.Raw, &now); err != nil {
			return fmt.Errorf("reading status.state: %w", err)
		}
	}
	configMap := configMapOf(obj)
	if _, err := controllerutil.CreateOrUpdate(ctx, g.Client, configMap, func() error {
		configMap.Data = map[string]string{"greeting": wanted.Greeting, "since": now.Since.Format(time.RFC3339)}
		return nil
	}); err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", client.ObjectKeyFromObject(configMap), err)
	}
	text, err := json.Marshal(now)
	obj.Status.State = &runtime.RawExtension{Raw: text}
	return err
}

// restore has the state of the former seed in status.state, which reconcile reads.
func (g greeting) restore(ctx context.Context, obj *extensionsv1alpha1.Extension) error {
	return g.reconcile(ctx, obj)
}

// migrate leaves status.state as it is: the gardenlet takes it to the next seed.
func (g greeting) migrate(ctx context.Context, obj *extensionsv1alpha1.Extension) error {
	return g.delete(ctx, obj)
}

func (g greeting) delete(ctx context.Context, obj *extensionsv1alpha1.Extension) error {
	return client.IgnoreNotFound(g.Delete(ctx, configMapOf(obj)))
}

func configMapOf(obj *extensionsv1alpha1.Extension) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: "greeting"}}
}
