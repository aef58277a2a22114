package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// gardenletCertificateExpiredWhileDown starts a landscape whose gardenlet has a certificate that expired in the
// meantime: it bootstraps again, and its bootstrap token is deleted afterwards.
func (l *landscape) gardenletCertificateExpiredWhileDown(t *testing.T) {
	_, first := gardenletConfig(t, l.seeds["local"])
	earlier, err := l.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	l.storeExpired(t)
	l.stop(t)
	down := time.Now()
	l.up(t)

	var config *rest.Config
	var certificate *x509.Certificate
	eventually(t, waitTimeout, func(context.Context) error {
		config, certificate = gardenletConfig(t, l.seeds["local"])
		if !time.Now().Before(certificate.NotAfter) || certificate.SerialNumber.Cmp(first.SerialNumber) == 0 {
			return fmt.Errorf("the gardenlet has the certificate %s until %s", certificate.SerialNumber, certificate.NotAfter)
		}
		return nil
	})
	if _, err := clientOf(t, config).CoreV1().Namespaces().Get(t.Context(), "garden", metav1.GetOptions{}); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
	eventually(t, waitTimeout, func(ctx context.Context) error {
		lease, err := l.kube.CoordinationV1().Leases("gardener-system-seed-lease").Get(ctx, "local", metav1.GetOptions{})
		if err == nil && lease.Spec.RenewTime.Time.Before(down) {
			err = fmt.Errorf("the Lease was renewed at %s last", lease.Spec.RenewTime)
		}
		return errors.Join(err, l.seedIsReady(ctx, "local", certificate.NotAfter))
	})
	requests, err := l.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if more := len(requests.Items) - len(earlier.Items); more != 1 {
		t.Errorf("the gardenlet has requested %d certificates, not one", more)
	}
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := l.kube.CoreV1().Secrets("kube-system").Get(ctx, bootstrapTokenOf("garden", "local"), metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the second bootstrap token is there still: %v", err)
		}
		return nil
	})
	l.checkNothingForbidden(t)
}

// storeExpired replaces the gardenlet's certificate by an expired one of the garden's authority.
func (l *landscape) storeExpired(t *testing.T) {
	t.Helper()
	pki := filepath.Join(l.dir, "pki", "garden")
	authority, err := tls.LoadX509KeyPair(filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		Subject:  pkix.Name{CommonName: gardenletOf("local"), Organization: []string{"gardener.cloud:system:seeds"}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority.Leaf, key.Public(), authority.PrivateKey)
	must(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	secrets := l.seeds["local"].CoreV1().Secrets("garden")
	secret, err := secrets.Get(t.Context(), "gardenlet-kubeconfig", metav1.GetOptions{})
	must(t, err)
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	must(t, err)
	for _, user := range config.AuthInfos {
		user.ClientCertificateData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		user.ClientKeyData = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	}
	secret.Data["kubeconfig"], err = clientcmd.Write(*config)
	must(t, err)
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	must(t, err)
	expired, _ := gardenletConfig(t, l.seeds["local"])
	if _, err := clientOf(t, expired).Discovery().RESTClient().Get().AbsPath("/api").DoRaw(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Fatalf("with a certificate that has expired: %v", err)
	}
}

// gardenletCertificateRotatedUnderLoad makes the gardenlet renew its certificate while it reconciles all the
// time. None of its requests fails.
func (l *landscape) gardenletCertificateRotatedUnderLoad(t *testing.T) {
	const rotations = 2
	before, from := l.startedControllers(t), l.logSize(t)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	served := make([]int, 4)
	for i := range served {
		bucket := l.create(t, "backupbuckets", bucketObject(fmt.Sprintf("load-%d", i), "local", "seed-local-backup"))
		defer l.delete(t, "backupbuckets", bucket)
		l.succeeds(t, "backupbuckets", bucket)
		load.Go(func() {
			var err error
			if served[i], err = l.keepReconciling(ctx, t, bucket); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	_, certificate := gardenletConfig(t, l.seeds["local"])
	for range rotations {
		certificate = l.renew(t, certificate)
	}
	stop()
	load.Wait()
	for i, n := range served {
		if n < 3 {
			t.Errorf("worker %d: its bucket was reconciled only %d times", i, n)
		}
	}
	for _, line := range l.failures(t, from) {
		t.Errorf("in the log: %s", line)
	}
	if after := l.startedControllers(t); after != before {
		t.Errorf("%d controllers were started before the rotations, %d after them", before, after)
	}
	l.checkNothingForbidden(t)
	t.Logf("reconciliations %v", served)
}

// renew requests a new certificate as Gardener's operators do, and waits until the gardenlet has it and the Seed
// shows it.
func (l *landscape) renew(t *testing.T, last *x509.Certificate) (next *x509.Certificate) {
	t.Helper()
	_, err := l.seeds["local"].CoreV1().Secrets("garden").Patch(t.Context(), "gardenlet-kubeconfig", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"gardener.cloud/operation":"renew"}}}`), metav1.PatchOptions{})
	must(t, err)
	eventually(t, waitTimeout, func(ctx context.Context) error {
		if _, next = gardenletConfig(t, l.seeds["local"]); next.SerialNumber.Cmp(last.SerialNumber) == 0 {
			return errors.New("the certificate is the old one")
		}
		return l.seedIsReady(ctx, "local", next.NotAfter)
	})
	secret, err := l.seeds["local"].CoreV1().Secrets("garden").Get(t.Context(), "gardenlet-kubeconfig", metav1.GetOptions{})
	must(t, err)
	if len(secret.Annotations) > 0 || len(secret.Data) != 1 {
		t.Errorf("the Secret has the annotations %v and %d entries", secret.Annotations, len(secret.Data))
	}
	return next
}

// keepReconciling triggers the reconciliation of a bucket and the Seed, again and again, until the context ends. It does not
// end the test, because it runs in a goroutine of its own.
func (l *landscape) keepReconciling(ctx context.Context, t *testing.T, bucket *unstructured.Unstructured) (served int, err error) {
	for ; ctx.Err() == nil && err == nil; served++ {
		l.annotate(t, "backupbuckets", "", bucket.GetName())
		l.annotate(t, "seeds", "", "local")
		for _, check := range []func(context.Context, string, *unstructured.Unstructured) error{l.checkReconciled, l.checkSucceeded} {
			var last error
			err = errors.Join(err, wait.PollUntilContextTimeout(context.WithoutCancel(ctx), 20*time.Millisecond, waitTimeout, true,
				func(ctx context.Context) (bool, error) {
					last = check(ctx, "backupbuckets", bucket)
					return last == nil, nil
				}), last)
		}
	}
	return served, err
}

// failures returns the lines of the log about failed requests of the gardenlet, except for conflicts of two writers.
func (l *landscape) failures(t *testing.T, from int64) []string {
	t.Helper()
	return slices.DeleteFunc(l.logged(t, from, "level=ERROR", "ended by itself", "forbidden something", "Unauthorized",
		"unable to authenticate", "tls: ", "x509: ", "EOF"),
		func(line string) bool {
			return !strings.Contains(line, `"gardenlet local"`) && strings.Contains(line, "level=ERROR") ||
				strings.Contains(line, "the object has been modified")
		})
}

// logged returns the lines of the log, from an offset on, that contain one of the words.
func (l *landscape) logged(t *testing.T, from int64, words ...string) (lines []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, "gardenlite.log"))
	must(t, err)
	for line := range strings.Lines(string(data[from:])) {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) }) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func (l *landscape) logSize(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(l.dir, "gardenlite.log"))
	must(t, err)
	return info.Size()
}

// startedControllers returns how many controllers the gardenlet has started, once all of them have their workers. The number
// grows only if the gardenlet starts again.
func (l *landscape) startedControllers(t *testing.T) (n int) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		begun := len(l.logged(t, 0, `msg="Starting Controller" logger="gardenlet local"`))
		if n = len(l.logged(t, 0, `msg="Starting workers" logger="gardenlet local"`)); n == 0 || n != begun {
			return fmt.Errorf("of %d controllers of the gardenlet, %d have started", begun, n)
		}
		return nil
	})
	return n
}

// seedIsReady returns an error if a Seed is not ready, or does not show when the certificate of its gardenlet
// expires.
func (l *landscape) seedIsReady(ctx context.Context, name string, expires time.Time) error {
	seed, err := l.at("seeds", "").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	said, _, _ := unstructured.NestedString(seed.Object, "status", "clientCertificateExpirationTimestamp")
	if !expires.IsZero() && said != expires.UTC().Format(time.RFC3339) {
		return fmt.Errorf("the Seed says that the certificate expires at %q, not at %s", said, expires)
	}
	ready := 0
	conditions, _, _ := unstructured.NestedSlice(seed.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["status"] != string(corev1.ConditionTrue) {
			return fmt.Errorf("Seed %s: %v: %v", name, condition["type"], condition["message"])
		}
		ready++
	}
	if ready < 4 {
		return fmt.Errorf("the Seed %s has %d conditions", name, ready)
	}
	return nil
}
