package e2e

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	renewNow   = `{"metadata":{"annotations":{"gardener.cloud/operation":"renew-kubeconfig"}}}`
	doNotRenew = `{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`
)

// TestManagedSeeds: the gardenlet of the seed local, which is deployed by its Gardenlet, bootstraps two further
// seeds, one with a token and one with a ServiceAccount. It is allowed the necessary requests only until the seeds
// are bootstrapped, and again when a user requests a renewal. The seeds run again when the process is restarted, and
// are gone without a trace after their ManagedSeeds are deleted.
func TestManagedSeeds(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	phase := func(what string) { t.Logf("%s after %s", what, time.Since(begin).Round(100*time.Millisecond)) }
	l := newLandscape(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("from the log:\n%s", strings.Join(l.logged(t, 0, "level=ERROR", "level=WARN", "ootstrap", "forbidden"), "\n"))
		}
	})
	l.deployItself(t)
	before := l.mustInventory(t)
	children := []*managedSeed{newManagedSeed(t, "by-token", "BootstrapToken", "10.1"),
		newManagedSeed(t, "by-account", "ServiceAccount", "10.2")}
	l.bootstrapChildren(t, children)
	serials := l.serials(t, children)
	phase("bootstrapped")

	// No controller reacts to the requests while there are no gardenlets.
	parent := l.parent(t)
	l.restart(t, "--controllers", "*,-gardenlet")
	for _, m := range children {
		m.mustNotBootstrap(t, parent)
		l.patch(t, "managedseeds", m.name, renewNow)
		m.mayBootstrap(t, l, parent)
	}
	token, account := children[0], children[1]
	l.patch(t, "managedseeds", token.name, doNotRenew)
	token.mustNotBootstrap(t, parent)
	phase("asked while there were no gardenlets")

	l.restart(t)
	l.isDeployedAnew(t)
	l.renewed(t, account, parent, serials[account.name])
	if now := l.serials(t, children); now[token.name].Cmp(serials[token.name]) != 0 {
		t.Errorf("%s came back with another certificate", token.name)
	}
	l.patch(t, "managedseeds", token.name, renewNow)
	l.renewed(t, token, parent, serials[token.name])
	l.checkNothingForbidden(t)
	phase("renewed")

	l.removeChildren(t, children, before)
	l.checkNothingForbidden(t)
	phase("removed")
}

// bootstrapChildren creates ManagedSeeds, whose gardenlets their parent bootstraps when their Shoots are ready.
func (l *landscape) bootstrapChildren(t *testing.T, children []*managedSeed) {
	t.Helper()
	parent := l.parent(t)
	for _, m := range children {
		m.create(t, l, "Secret", "CredentialsBinding", "Shoot") // not all at first: what follows has to be seen before the Shoot is ready
		eventually(t, waitTimeout, func(context.Context) error {
			ctx := t.Context()
			shoot, err := l.at("shoots", "garden").Get(ctx, m.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if seed, _, _ := unstructured.NestedString(shoot.Object, "spec", "seedName"); seed != "local" {
				return fmt.Errorf("the Shoot %s is on the seed %q", m.name, seed)
			}
			return nil
		})
		m.create(t, l, "ManagedSeed")
		m.mayBootstrap(t, l, parent)
		eventually(t, waitTimeout, func(context.Context) error {
			return l.conditionIs(t.Context(), "managedseeds", m.name, "ShootReconciled", "False")
		})
	}
	for _, m := range children {
		l.isManaged(t, m.name)
		l.runs(t, m.name)
		m.hasNothingToBootstrap(t, l)
		m.mustNotBootstrap(t, parent)
		l.names = append(l.names, m.name)
	}
	l.connect(t)
	l.checkNothingForbidden(t)
}

// parent returns a client with the identity of the gardenlet of the seed local.
func (l *landscape) parent(t *testing.T) kubernetes.Interface {
	t.Helper()
	config, _ := gardenletConfig(t, l.seeds["local"])
	return clientOf(t, config)
}

// certificate returns the certificate of a child's gardenlet.
func (l *landscape) certificate(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	_, certificate := gardenletConfig(t, l.seeds[name])
	if certificate.Subject.CommonName != gardenletOf(name) {
		t.Errorf("the gardenlet of %s is %s", name, certificate.Subject)
	}
	return certificate
}

func (l *landscape) serials(t *testing.T, children []*managedSeed) map[string]*big.Int {
	t.Helper()
	serials := map[string]*big.Int{}
	for _, m := range children {
		serials[m.name] = l.certificate(t, m.name).SerialNumber
	}
	return serials
}

// restart stops the process and starts it again.
func (l *landscape) restart(t *testing.T, args ...string) {
	t.Helper()
	l.stop(t)
	l.up(t, args...)
	for _, name := range l.names { // the landscape does not wait for the children's clusters
		eventually(t, waitTimeout, func(context.Context) error {
			for _, c := range componentsOf(t, l.dir) {
				if c.Name == "seed-"+name && c.State == "Ready" {
					return nil
				}
			}
			return fmt.Errorf("the cluster of seed %s does not run", name)
		})
	}
	l.connect(t)
}

// renewed waits until a child has a new identity, and the request for it is gone.
func (l *landscape) renewed(t *testing.T, m *managedSeed, parent kubernetes.Interface, last *big.Int) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		ctx := t.Context()
		obj, err := l.at("managedseeds", "garden").Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if asks := obj.GetAnnotations()["gardener.cloud/operation"]; asks != "" {
			return fmt.Errorf("%s has the annotation %s still", m.name, asks)
		}
		secret, err := l.seeds[m.name].CoreV1().Secrets("garden").Get(ctx, "gardenlet-kubeconfig", metav1.GetOptions{})
		if err != nil {
			return err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
		if err != nil || len(config.CertData) == 0 {
			return fmt.Errorf("%s has no certificate: %w", m.name, err)
		}
		certificate := certificateIn(t, string(config.CertData))
		if certificate.SerialNumber.Cmp(last) == 0 {
			return fmt.Errorf("%s has the certificate that it had", m.name)
		}
		return l.seedIsReady(ctx, m.name, certificate.NotAfter)
	})
	l.runs(t, m.name)
	m.hasNothingToBootstrap(t, l)
	m.mustNotBootstrap(t, parent)
}

// removeChildren deletes ManagedSeeds and waits until nothing of them is left, in the garden, the process and its directory.
func (l *landscape) removeChildren(t *testing.T, children []*managedSeed, before map[string]bool) {
	t.Helper()
	for _, m := range children {
		l.patch(t, "managedseeds", m.name, `{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)
		must(t, l.at("managedseeds", "garden").Delete(t.Context(), m.name, metav1.DeleteOptions{}))
	}
	for _, m := range children {
		eventually(t, waitTimeout, func(context.Context) error {
			ctx := t.Context()
			obj, err := l.at("managedseeds", "garden").Get(ctx, m.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(fmt.Errorf("the ManagedSeed %s is there still", m.name), err, func() error {
				if err != nil {
					return nil
				}
				return fmt.Errorf("%v", obj.Object["status"])
			}())
		})
		l.names = slices.DeleteFunc(l.names, func(name string) bool { return name == m.name })
		delete(l.seeds, m.name)
		for _, c := range componentsOf(t, l.dir) {
			if strings.Contains(c.Name, m.name) {
				t.Errorf("the ManagedSeed is gone, but %s is %s", c.Name, c.State)
			}
		}
		for _, kind := range []string{"Shoot", "CredentialsBinding", "Secret"} {
			l.delete(t, resourceOf(kind), m.objects[kind])
		}
		must(t, filepath.WalkDir(l.dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.Contains(path, m.name) {
				t.Errorf("left: %s", path)
			}
			if errors.Is(err, os.ErrNotExist) { // the datastore's files come and go
				return nil
			}
			return err
		}))
	}
	l.becomes(t, before, "after the ManagedSeeds")
}
