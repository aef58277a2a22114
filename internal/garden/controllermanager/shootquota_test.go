package controllermanager

import (
	"math"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func quota(name string, days *int32) *corev1beta1.Quota {
	return &corev1beta1.Quota{ObjectMeta: metaOf("garden", name), Spec: corev1beta1.QuotaSpec{ClusterLifetimeDays: days}}
}

func quotaReferences(names ...string) (all []corev1.ObjectReference) {
	for _, name := range names {
		all = append(all, corev1.ObjectReference{Namespace: "garden", Name: name})
	}
	return all
}

func TestEnd(t *testing.T) {
	const end = "2026-01-04T00:00:00Z" // 3 days after it was created.
	for name, test := range map[string]struct {
		secretBinding, credentialsBinding []corev1.ObjectReference
		annotation                        string
		after                             time.Duration
		want                              string
		again                             time.Duration
		deleted, fails                    bool
	}{
		"no binding":                    {want: "", again: time.Hour},
		"no binding any more":           {annotation: end, after: 10 * day, want: "", again: time.Hour},
		"unlimited":                     {secretBinding: quotaReferences("unlimited"), annotation: end, after: 10 * day, again: time.Hour},
		"begins":                        {secretBinding: quotaReferences("unlimited", "seven", "three"), want: end, again: time.Hour},
		"begins, by CredentialsBinding": {credentialsBinding: quotaReferences("three"), want: end, again: time.Hour},
		"ends soon":                     {secretBinding: quotaReferences("three"), after: 3*day - time.Minute, want: end, again: time.Minute + 1},
		"ends now":                      {secretBinding: quotaReferences("three"), after: 3 * day, want: end, again: 1},
		"over":                          {secretBinding: quotaReferences("three"), after: 3*day + 1, want: end, deleted: true},
		"over, by CredentialsBinding":   {credentialsBinding: quotaReferences("three"), after: 4 * day, want: end, deleted: true},
		"prolonged": {secretBinding: quotaReferences("three"), after: 4 * day, annotation: "2026-01-07T00:00:00Z",
			want: "2026-01-07T00:00:00Z", again: time.Hour},
		"lives long":                     {secretBinding: quotaReferences("longest"), want: "2318-04-12T00:00:00Z", again: time.Hour},
		"with a wrong annotation":        {secretBinding: quotaReferences("three"), annotation: "soon", want: "soon", fails: true},
		"with a quota that is not there": {secretBinding: quotaReferences("gone"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{ObjectMeta: metaOf("garden-dev", "x")}
			shoot.CreationTimestamp, shoot.Finalizers = metav1.NewTime(kittest.Start), []string{"test"}
			if test.annotation != "" {
				shoot.Annotations = map[string]string{constants.ShootExpirationTimestamp: test.annotation}
			}
			objects := []client.Object{shoot, quota("unlimited", nil), quota("three", ptr.To[int32](3)), quota("seven", ptr.To[int32](7)),
				quota("longest", ptr.To[int32](math.MaxInt32)),
				&corev1beta1.SecretBinding{ObjectMeta: metaOf("garden-dev", "sb"), Quotas: test.secretBinding},
				&securityv1alpha1.CredentialsBinding{ObjectMeta: metaOf("garden-dev", "cb"), Quotas: test.credentialsBinding}}
			if test.secretBinding != nil {
				shoot.Spec.SecretBindingName = ptr.To("sb")
			}
			if test.credentialsBinding != nil {
				shoot.Spec.CredentialsBindingName = ptr.To("cb")
			}
			g := kittest.New(t, objects...)
			g.After(test.after)
			result, err := g.Reconcile(reconcile.AsReconciler(g, &ShootQuota{Base: g.Base()}), shoot)
			if g.Exists(shoot); (err != nil) != test.fails || result.RequeueAfter != test.again {
				t.Errorf("again after %s, %v", result.RequeueAfter, err)
			}
			if got := shoot.Annotations[constants.ShootExpirationTimestamp]; got != test.want || (shoot.DeletionTimestamp != nil) != test.deleted {
				t.Errorf("ends %q, deleted %v", got, shoot.DeletionTimestamp)
			}
			if test.deleted != (shoot.Annotations[constants.ConfirmationDeletion] == "true") {
				t.Errorf("annotations %v", shoot.Annotations)
			}
		})
	}
}
