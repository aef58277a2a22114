package controllermanager

import (
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func bucket(name, seed, problem string) *corev1beta1.BackupBucket {
	b := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.SeedName = &seed
	if problem != "" {
		b.Status.LastError = &corev1beta1.LastError{Description: problem}
	}
	return b
}

func TestReconcileSeedBackupBucketsCheck(t *testing.T) {
	good, bad, unknown, progressing := corev1beta1.ConditionTrue, corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown,
		corev1beta1.ConditionProgressing
	for name, test := range map[string]struct {
		before    corev1beta1.ConditionStatus
		buckets   []client.Object
		threshold time.Duration
		want      corev1beta1.ConditionStatus
		reason    string
		message   string
	}{
		"good": {"", []client.Object{bucket("a", "s", ""), bucket("o", "other", "e")}, 0, good, "BackupBucketsAvailable", ""},
		"none": {"", []client.Object{bucket("o", "other", "")}, 0, unknown, "BackupBucketsGone", ""},
		"errors": {good, []client.Object{bucket("b", "s", "f"), bucket("a", "s", "e"), bucket("c", "s", "")},
			0, bad, "BackupBucketsError", "a: e; b: f"},
		"errors for a moment":     {good, []client.Object{bucket("a", "s", "e")}, time.Minute, progressing, "BackupBucketsError", "a: e"},
		"none for a moment":       {good, nil, time.Minute, progressing, "BackupBucketsGone", ""},
		"errors for a long time":  {bad, []client.Object{bucket("a", "s", "e")}, time.Minute, bad, "BackupBucketsError", "a: e"},
		"good after a bad period": {bad, []client.Object{bucket("a", "s", "")}, time.Minute, good, "BackupBucketsAvailable", ""},
	} {
		seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		if test.before != "" {
			seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedBackupBucketsReady, Status: test.before}}
		}
		g := kittest.New(t, append(test.buckets, seed)...)
		result := g.MustReconcile(reconcile.AsReconciler(g, &SeedBackupBucketsCheck{Base: g.Base(), Threshold: test.threshold}), seed)
		c := conditions.Get(seed.Status.Conditions, corev1beta1.SeedBackupBucketsReady)
		if c == nil || c.Status != test.want || c.Reason != test.reason || !strings.Contains(c.Message, test.message) ||
			result.RequeueAfter != DefaultSeedCheckSyncPeriod {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestChangedSeedBackupBucketsCheck(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		want          bool
	}{"same": {"e", "e", false}, "none": {"", "", false}, "new": {"", "e", true}, "gone": {"e", "", true}, "another": {"e", "f", true}} {
		if bucketChanged(bucket("a", "s", test.before), bucket("a", "s", test.after)) != test.want {
			t.Errorf("%s: want %v", name, test.want)
		}
	}
}
