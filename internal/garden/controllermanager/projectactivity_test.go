package controllermanager

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func TestWritesActivity(t *testing.T) {
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To("garden-dev")}}
	g := kittest.New(t, project, &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "empty"}})
	r := &ProjectActivity{Base: g.Base()}
	for range 2 {
		g.After(time.Minute)
		g.MustReconcile(reconcile.AsReconciler(g, r), project)
		if at := project.Status.LastActivityTimestamp; at == nil || !at.Time.Equal(g.Clock.Now()) {
			t.Errorf("last activity %v at %s", at, g.Clock.Now())
		}
	}
	g.MustReconcile(reconcile.AsReconciler(g, r), &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "gone"}})
	if got := r.projectOf(t.Context(), &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev"}}); len(
		got) != 1 || got[0].Name != "dev" {
		t.Errorf("the project is %v", got)
	}
	if got := r.projectOf(t.Context(), &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}}); len(got) != 0 {
		t.Errorf("the project is %v", got)
	}
}

func TestWhatIsActivity(t *testing.T) {
	g := kittest.New(t)
	r := &ProjectActivity{Base: g.Base()}
	aged := func(age time.Duration) *corev1beta1.Shoot {
		return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", CreationTimestamp: metav1.NewTime(g.Clock.Now().Add(-age))}}
	}
	changed := aged(time.Hour)
	changed.ResourceVersion = "2"
	if p := r.activity(); !p.Create(event.CreateEvent{Object: aged(time.Hour)}) || p.Create(event.CreateEvent{Object: aged(time.Hour + 1)}) ||
		p.Update(event.UpdateEvent{ObjectOld: aged(0), ObjectNew: aged(0)}) ||
		!p.Update(event.UpdateEvent{ObjectOld: aged(0), ObjectNew: changed}) {
		t.Error("wrong activities")
	}
	for label, want := range map[string]bool{constants.LabelSecretBindingReference: true,
		constants.LabelCredentialsBindingReference: true, "other": false} {
		labelled, plain := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: "true"}}},
			&metav1.PartialObjectMetadata{}
		p := kit.IsOrWas(isReferred)
		if p.Create(event.CreateEvent{Object: labelled}) != want || p.Delete(event.DeleteEvent{Object: labelled}) != want ||
			p.Update(event.UpdateEvent{ObjectOld: labelled, ObjectNew: plain}) != want ||
			p.Update(event.UpdateEvent{ObjectOld: plain, ObjectNew: labelled}) != want {
			t.Errorf("%s: not %v", label, want)
		}
	}
}
