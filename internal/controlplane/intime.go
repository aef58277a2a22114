package controlplane

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/certificates"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
)

// withUsersInTime refuses users whose certificate has expired by the clock of the landscape, with the reason. The authenticator checks it
// by the real clock, by which it was issued. Components renew theirs by themselves, but use the old one for some minutes, in which the
// clock may be advanced by years.
func withUsersInTime(next http.Handler, own *pki.PKI, clk clock.PassiveClock) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		client := r.TLS.PeerCertificates[0]
		name, now := client.Subject.CommonName, clk.Now()
		end := certificates.ByClock(client, clk).NotAfter
		if !now.After(end) || strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "gardener.cloud:") || own.Renews(name) {
			next.ServeHTTP(w, r)
			return
		}
		responsewriters.WriteRawJSON(http.StatusUnauthorized, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusUnauthorized,
			Reason: metav1.StatusReasonUnauthorized,
			Message: fmt.Sprintf("the certificate of %s has expired at %s, and the clock of the landscape says %s: get a new kubeconfig", name,
				end.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)),
		}, w)
	})
}
