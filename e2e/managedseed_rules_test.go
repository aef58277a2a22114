package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

// attempt is a request with which the parent's gardenlet bootstraps a seed.
type attempt struct {
	what, method string
	do           func(context.Context, kubernetes.Interface) error
}

// attempts returns all requests with which a seed could be bootstrapped, in an order in which they succeed.
func (m *managedSeed) attempts(t *testing.T) []attempt {
	secret, account, binding := &corev1.Secret{}, &corev1.ServiceAccount{}, &rbacv1.ClusterRoleBinding{}
	content := tokenObject(m.tokenSecret(), "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/"+m.name)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, secret))
	account.Namespace, account.Name, binding.Name = "garden", m.account(), m.binding()
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "gardener.cloud:system:seed-bootstrapper"}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "garden", Name: m.account()}}
	return []attempt{
		{"create the bootstrap token", "BootstrapToken", func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets("kube-system").Create(ctx, secret, created)
			return err
		}},
		{"get the bootstrap token", "BootstrapToken", func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets("kube-system").Get(ctx, m.tokenSecret(), metav1.GetOptions{})
			return err
		}},
		{"create the ServiceAccount", "ServiceAccount", func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ServiceAccounts("garden").Create(ctx, account, created)
			return err
		}},
		{"get the ServiceAccount", "ServiceAccount", func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ServiceAccounts("garden").Get(ctx, m.account(), metav1.GetOptions{})
			return err
		}},
		{"create the ClusterRoleBinding", "ServiceAccount", func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.RbacV1().ClusterRoleBindings().Create(ctx, binding, created)
			return err
		}},
		{"get the ClusterRoleBinding", "ServiceAccount", func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.RbacV1().ClusterRoleBindings().Get(ctx, m.binding(), metav1.GetOptions{})
			return err
		}},
		{"create a token of the ServiceAccount", "ServiceAccount", func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ServiceAccounts("garden").CreateToken(ctx, m.account(), &authenticationv1.TokenRequest{}, created)
			return err
		}},
	}
}

// mayBootstrap expects, while a seed has no identity, that its parent is allowed all requests of its bootstrap
// method. The administrator removes what these requests have created.
func (m *managedSeed) mayBootstrap(t *testing.T, l *landscape, parent kubernetes.Interface) {
	t.Helper()
	for _, a := range m.attempts(t) {
		if a.method != m.method {
			continue
		}
		eventually(t, waitTimeout, func(ctx context.Context) error { // the graph has the ManagedSeed after a while
			if err := a.do(ctx, parent); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("to %s of %s: %w", a.what, m.name, err)
			}
			return nil
		})
	}
	if m.method == "BootstrapToken" {
		must(t, l.kube.CoreV1().Secrets("kube-system").Delete(t.Context(), m.tokenSecret(), metav1.DeleteOptions{}))
		return
	}
	must(t, l.kube.CoreV1().ServiceAccounts("garden").Delete(t.Context(), m.account(), metav1.DeleteOptions{}))
	must(t, l.kube.RbacV1().ClusterRoleBindings().Delete(t.Context(), m.binding(), metav1.DeleteOptions{}))
}

// mustNotBootstrap expects, when a seed has its identity, that its parent is refused all requests, whether the
// objects exist or not.
func (m *managedSeed) mustNotBootstrap(t *testing.T, parent kubernetes.Interface) {
	t.Helper()
	for _, a := range m.attempts(t) {
		eventually(t, waitTimeout, func(ctx context.Context) error { // the graph has the Seed after a while
			if err := a.do(ctx, parent); !apierrors.IsForbidden(err) {
				return fmt.Errorf("to %s of %s, which has its identity: %w", a.what, m.name, errors.Join(errors.New("not refused"), err))
			}
			return nil
		})
	}
}

// hasNothingToBootstrap waits until the garden has no object with which the seed could be bootstrapped.
func (m *managedSeed) hasNothingToBootstrap(t *testing.T, l *landscape) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		for _, a := range m.attempts(t) {
			if a.what[:3] != "get" {
				continue
			}
			if err := a.do(ctx, l.kube); !apierrors.IsNotFound(err) {
				return fmt.Errorf("to %s of %s, as the administrator: %w", a.what, m.name, errors.Join(errors.New("it is there"), err))
			}
		}
		return nil
	})
}

// deployItself creates the Gardenlet of the seed local: with its current configuration, a label, and quicker
// controllers.
func (l *landscape) deployItself(t *testing.T) {
	t.Helper()
	seed, err := l.at("seeds", "").Get(t.Context(), "local", metav1.GetOptions{})
	must(t, err)
	data, err := json.Marshal(seed.Object["spec"])
	must(t, err)
	var spec map[string]any
	must(t, json.Unmarshal(data, &spec))
	started := l.startedControllers(t)
	l.create(t, "gardenlets",
		meta("seedmanagement.gardener.cloud/v1alpha1", "Gardenlet", "garden", "local", map[string]any{"spec": map[string]any{
			"deployment": map[string]any{"helm": map[string]any{"ociRepository": map[string]any{"ref": "registry.example.com/gardenlet:v1.150.0"}}},
			"config": map[string]any{
				"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
				"controllers": map[string]any{"managedSeed": map[string]any{"waitSyncPeriod": "1s"}},
				"seedConfig":  map[string]any{"metadata": map[string]any{"labels": map[string]any{"deployed": "anew"}}, "spec": spec},
			}}}))
	l.isDeployedAnew(t)
	eventually(t, waitTimeout, func(context.Context) error {
		if now := l.startedControllers(t); now < 2*started {
			return fmt.Errorf("the gardenlet has started %d controllers, not yet as many again as %d", now, started)
		}
		return nil
	})
}

// isDeployedAnew waits until the gardenlet of the seed local runs as its object says.
func (l *landscape) isDeployedAnew(t *testing.T) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		seed, err := l.at("seeds", "").Get(ctx, "local", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if seed.GetLabels()["deployed"] != "anew" {
			return fmt.Errorf("the Seed has the labels %v", seed.GetLabels())
		}
		return errors.Join(l.seedIsReady(ctx, "local", time.Time{}),
			l.conditionIs(ctx, "gardenlets", "local", "GardenletReconciled", "True"), l.isListed(t, "local"))
	})
}
