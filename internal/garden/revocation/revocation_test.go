package revocation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/certificates"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// issued returns a request with a client certificate that was issued at this time.
func issued(name, organization string, at time.Time) *http.Request {
	return &http.Request{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{
		Subject: pkix.Name{CommonName: name, Organization: []string{organization}}, NotBefore: at.Add(-certificates.Backdate),
	}}}}
}

func accepts(t *testing.T, l *DeletedSeeds, r *http.Request) bool {
	t.Helper()
	_, ok, err := l.Authenticator(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{}}, true, nil
	})).AuthenticateRequest(r)
	if ok == (err != nil) {
		t.Errorf("accepted: %t, %v", ok, err)
	}
	return ok
}

func TestRevocation(t *testing.T) {
	const seeds, gardenlet = "gardener.cloud:system:seeds", "gardener.cloud:system:seed:"
	client, clock := fake.NewClientset(), testingclock.NewFakeClock(now)
	l := New(clock)
	if accepts(t, l, issued(gardenlet+"a", seeds, now)) {
		t.Error("accepted before the list is known")
	}
	if !accepts(t, l, issued("admin", "system:masters", now)) || !accepts(t, l, &http.Request{}) {
		t.Error("others are refused before the list is known")
	}
	l.loaded = true
	for range 2 { // the second time as after a restart
		l.RecordDeletion(client, "a")
		for _, test := range []struct {
			name string
			r    *http.Request
			want bool
		}{
			{"before", issued(gardenlet+"a", seeds, now.Add(-time.Second)), false},
			{"then", issued(gardenlet+"a", seeds, now), false},
			{"after", issued(gardenlet+"a", seeds, now.Add(time.Second)), true},
			{"another seed's", issued(gardenlet+"b", seeds, now.Add(-time.Hour)), true},
			{"another group's", issued(gardenlet+"a", "developers", now.Add(-time.Hour)), true},
		} {
			if got := accepts(t, l, test.r); got != test.want {
				t.Errorf("%s: accepted: %t", test.name, got)
			}
		}
		configMap, err := client.CoreV1().ConfigMaps("garden").Get(t.Context(), ConfigMapName, metav1.GetOptions{})
		if err != nil || configMap.Data["a"] != "2026-03-01T12:00:00Z" {
			t.Fatalf("%v, %v", configMap, err)
		}
		l = New(clock)
		l.loaded = true
		l.store(parse(configMap))
	}
}

// TestWrite checks that an old deletion time is removed when another one is written.
func TestWrite(t *testing.T) {
	client, l := fake.NewClientset(), New(testingclock.NewFakeClock(now))
	for seed, at := range map[string]time.Time{"old": now.Add(-2 * keepFor), "a": now} {
		if err := l.write(context.Background(), client, seed, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.write(context.Background(), client, "b", now); err != nil {
		t.Fatal(err)
	}
	configMap, err := client.CoreV1().ConfigMaps("garden").Get(t.Context(), ConfigMapName, metav1.GetOptions{})
	if err != nil || len(configMap.Data) != 2 || configMap.Data["old"] != "" {
		t.Errorf("%v, %v", configMap, err)
	}
}

// TestWriteWithoutNamespace checks that a deletion time is written in a garden without the namespace garden.
func TestWriteWithoutNamespace(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "configmaps", func(action k8stesting.Action) (bool, runtime.Object, error) {
		_, err := client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("namespaces"), "", action.GetNamespace())
		return err != nil, nil, err
	})
	if err := New(testingclock.NewFakeClock(now)).write(t.Context(), client, "a", now); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("garden").Get(t.Context(), ConfigMapName, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
