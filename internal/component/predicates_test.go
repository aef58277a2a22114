package component

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func TestPredicates(t *testing.T) {
	typeChanged := func(before, after *corev1.Secret) bool { return before.Type != after.Type }
	always := func(_, _ client.Object) bool { return true }
	for name, test := range map[string]struct {
		predicate                            predicate.Predicate
		creation, deletion, counting, others bool
	}{
		"ChangesIf":                    {predicate: ChangesIf(typeChanged), creation: true, deletion: true, counting: true},
		"CreationsAndUpdatesIf":        {predicate: CreationsAndUpdatesIf(typeChanged), creation: true, counting: true},
		"DeletionsAndUpdatesIf":        {predicate: DeletionsAndUpdatesIf(typeChanged), deletion: true, counting: true},
		"UpdatesIf":                    {predicate: UpdatesIf(typeChanged), counting: true},
		"UpdatesIf for objects of all": {predicate: UpdatesIf(always), counting: true, others: true},
		"Creations":                    {predicate: Creations(), creation: true},
		"Deletions":                    {predicate: Deletions(), deletion: true},
	} {
		t.Run(name, func(t *testing.T) {
			secret, other := &corev1.Secret{}, &corev1.ConfigMap{}
			update := func(before, after client.Object) bool {
				return test.predicate.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
			}
			for event, passes := range map[string][2]bool{
				"a creation":                    {test.predicate.Create(event.CreateEvent{Object: secret}), test.creation},
				"an existing object":            {test.predicate.Create(event.CreateEvent{Object: secret, IsInInitialList: true}), test.creation},
				"a deletion":                    {test.predicate.Delete(event.DeleteEvent{Object: secret}), test.deletion},
				"an update that counts":         {update(secret, &corev1.Secret{Type: "other"}), test.counting},
				"an update that does not count": {update(secret, secret), test.others},
				"an update of another type":     {update(other, other), test.others},
				"an update from another type":   {update(other, secret), test.others},
				"a generic event":               {test.predicate.Generic(event.GenericEvent{Object: secret}), false},
			} {
				if passes[0] != passes[1] {
					t.Errorf("%s: passes is %t, not %t", event, passes[0], passes[1])
				}
			}
		})
	}
}
