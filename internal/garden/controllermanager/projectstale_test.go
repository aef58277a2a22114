package controllermanager

import (
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

const staleNamespace = "garden-dev"

func labelled(namespace, name string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}
	for _, label := range labels {
		m.Labels[label] = "true"
	}
	return m
}

func projectOfAge(age time.Duration) *corev1beta1.Project {
	return &corev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "dev", CreationTimestamp: metav1.NewTime(kittest.Start.Add(-age)), Finalizers: []string{"test"}},
		Spec:       corev1beta1.ProjectSpec{Namespace: ptr.To(staleNamespace)},
	}
}

func namespace(annotations ...string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: staleNamespace, Annotations: map[string]string{}}}
	for _, a := range annotations {
		n.Annotations[a] = "true"
	}
	return n
}

func newReconciler(g kittest.Garden) *ProjectStale {
	return &ProjectStale{Base: g.Base()}
}

func secretBinding(namespace, credentials string, quotas ...string) *corev1beta1.SecretBinding {
	return &corev1beta1.SecretBinding{ObjectMeta: labelled(namespace, "sb"),
		SecretRef: corev1.SecretReference{Namespace: staleNamespace, Name: credentials}, Quotas: referencesTo(quotas)}
}

func credentialsBinding(namespace, apiVersion, kind, credentials string, quotas ...string) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta: labelled(namespace, "cb"),
		CredentialsRef: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: staleNamespace,
			Name: credentials}, Quotas: referencesTo(quotas),
	}
}

func referencesTo(names []string) (all []corev1.ObjectReference) {
	for _, name := range names {
		all = append(all, corev1.ObjectReference{Namespace: staleNamespace, Name: name})
	}
	return all
}

func shootWith(namespace, secretBinding, credentialsBinding string) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: labelled(namespace, "shoot")}
	if secretBinding != "" {
		s.Spec.SecretBindingName = &secretBinding
	}
	if credentialsBinding != "" {
		s.Spec.CredentialsBindingName = &credentialsBinding
	}
	return s
}

func TestUses(t *testing.T) {
	const bySB, byCB = constants.LabelSecretBindingReference, constants.LabelCredentialsBindingReference
	secret := func(labels ...string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: labelled(staleNamespace, "x", labels...)}
	}
	quota := &corev1beta1.Quota{ObjectMeta: labelled(staleNamespace, "q")}
	monitoring := secret(bySB)
	monitoring.Labels[constants.GardenRole] = constants.GardenRoleMonitoring
	old := 31 * day
	for name, test := range map[string]struct {
		age   time.Duration
		there []client.Object
		stale bool
	}{
		"nothing":         {old, []client.Object{namespace()}, true},
		"young":           {30*day - time.Second, []client.Object{namespace()}, false},
		"old enough":      {30 * day, []client.Object{namespace()}, true},
		"annotated":       {old, []client.Object{namespace(constants.ProjectSkipStaleCheck)}, false},
		"Shoot":           {old, []client.Object{namespace(), shootWith(staleNamespace, "", "")}, false},
		"Shoot elsewhere": {old, []client.Object{namespace(), shootWith("other", "", "")}, true},
		"BackupEntry":     {old, []client.Object{namespace(), &corev1beta1.BackupEntry{ObjectMeta: labelled(staleNamespace, "be")}}, false},
		"Secret unused":   {old, []client.Object{namespace(), secret(bySB), secretBinding("other", "x")}, true},
		"Secret by SecretBinding": {
			old, []client.Object{namespace(), secret(bySB), secretBinding("other", "x"), shootWith("other", "sb", "")}, false},
		"Secret without the label": {
			old, []client.Object{namespace(), secret(), secretBinding("other", "x"), shootWith("other", "sb", "")}, true},
		"Secret of a gardenlet": {
			old, []client.Object{namespace(), monitoring, secretBinding("other", "x"), shootWith("other", "sb", "")}, true},
		"another Secret": {
			old, []client.Object{namespace(), secret(bySB), secretBinding("other", "y"), shootWith("other", "sb", "")}, true},
		"binding of another namespace": {
			old, []client.Object{namespace(), secret(bySB), secretBinding("third", "x"), shootWith("other", "sb", "")}, true},
		"Secret by CredentialsBinding": {old,
			[]client.Object{namespace(), secret(byCB), credentialsBinding("other", "v1", "Secret", "x"), shootWith("other", "", "cb")}, false},
		"Secret by the other kind": {old,
			[]client.Object{namespace(), secret(bySB), credentialsBinding("other", "v1", "Secret", "x"), shootWith("other", "", "cb")}, true},
		"WorkloadIdentity": {old, []client.Object{namespace(), &securityv1alpha1.WorkloadIdentity{ObjectMeta: labelled(staleNamespace,
			"w", byCB)},
			credentialsBinding("other", "security.gardener.cloud/v1alpha1", "WorkloadIdentity", "w"), shootWith("other", "", "cb")}, false},
		"InternalSecret": {old, []client.Object{namespace(), &corev1beta1.InternalSecret{ObjectMeta: labelled(staleNamespace, "i", byCB)},
			credentialsBinding("other", "core.gardener.cloud/v1beta1", "InternalSecret", "i"), shootWith("other", "", "cb")}, false},
		"Quota unused": {old, []client.Object{namespace(), quota, secretBinding("other", "y", "q")}, true},
		"Quota by SecretBinding": {
			old, []client.Object{namespace(), quota, secretBinding("other", "y", "q"), shootWith("other", "sb", "")}, false},
		"Quota by CredentialsBinding": {old,
			[]client.Object{namespace(), quota, credentialsBinding("other", "v1", "Secret", "y", "q"), shootWith("other", "", "cb")}, false},
		"another Quota": {
			old, []client.Object{namespace(), quota, secretBinding("other", "y", "p"), shootWith("other", "sb", "")}, true},
		"Shoot that uses nothing from it": {
			old, []client.Object{namespace(), quota, secretBinding("other", "y", "q"), shootWith("other", "sb2", "cb2")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := projectOfAge(test.age)
			was := metav1.NewTime(kittest.Start.Add(-day))
			if !test.stale {
				p.Status.StaleSinceTimestamp, p.Status.StaleAutoDeleteTimestamp = &was, &was
			}
			g := kittest.New(t, append(test.there, p)...)
			if again := g.MustReconcile(reconcile.AsReconciler(g, newReconciler(g)), p); again.RequeueAfter != DefaultSyncPeriodProjectStale {
				t.Errorf("again after %s", again.RequeueAfter)
			}
			if test.stale != (p.Status.StaleSinceTimestamp != nil) || p.Status.StaleAutoDeleteTimestamp != nil || p.DeletionTimestamp != nil {
				t.Errorf("stale since %v, deleted at %v", p.Status.StaleSinceTimestamp, p.Status.StaleAutoDeleteTimestamp)
			}
		})
	}
}

func TestLifeOfStaleProject(t *testing.T) {
	p := projectOfAge(0)
	g := kittest.New(t, p, namespace())
	r := newReconciler(g)
	want := func(after time.Duration, since, autoDelete time.Duration, deleted bool) {
		t.Helper()
		g.Clock.SetTime(kittest.Start.Add(after))
		g.MustReconcile(reconcile.AsReconciler(g, r), p)
		for what, times := range map[string]struct {
			want time.Duration
			got  *metav1.Time
		}{"since": {since, p.Status.StaleSinceTimestamp}, "autoDelete": {autoDelete, p.Status.StaleAutoDeleteTimestamp}} {
			if times.want < 0 && times.got != nil || times.want >= 0 && (times.got == nil || !times.got.Time.Equal(kittest.Start.Add(times.want))) {
				t.Errorf("after %s: %s is %v, not %s", after, what, times.got, times.want)
			}
		}
		if deleted != (p.DeletionTimestamp != nil) {
			t.Errorf("after %s: deleted at %v", after, p.DeletionTimestamp)
		}
	}
	want(29*day, -1, -1, false)
	p.Status.LastActivityTimestamp = &metav1.Time{Time: g.Clock.Now()}
	g.Must(g.Status().Update(t.Context(), p))
	want(31*day, -1, -1, false)
	want(60*day, 60*day, -1, false)
	want(74*day-time.Second, 60*day, -1, false)
	want(74*day, 60*day, 150*day, false)
	// The deletion time may become later, but not earlier.
	r.ExpirationTime = 80 * day
	want(75*day, 60*day, 150*day, false)
	r.ExpirationTime = 91 * day
	want(75*day, 60*day, 151*day, false)
	want(151*day-time.Second, 60*day, 151*day, false)
	if again := g.MustReconcile(reconcile.AsReconciler(g, r), p); again.RequeueAfter != time.Second {
		t.Errorf("a second before its deletion, it is looked at again after %s", again.RequeueAfter)
	}
	// The cache does not contain the Shoot yet.
	r.Reader = kittest.New(t, projectOfAge(0), namespace(), shootWith(staleNamespace, "", "")).Client
	want(151*day, 60*day, 151*day, false)
	r.Reader = g
	want(151*day, 60*day, 151*day, true)
	if p.Annotations[constants.ConfirmationDeletion] != "true" || p.Annotations[constants.GardenerTimestamp] == "" {
		t.Errorf("the deletion was not confirmed: %v", p.Annotations)
	}
}
