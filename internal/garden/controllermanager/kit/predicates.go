package kit

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// UpdatesIf passes the updates for which counts returns true, and no other events.
func UpdatesIf[T client.Object](counts func(before, after T) bool) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(T)
			after, ok2 := e.ObjectNew.(T)
			return ok1 && ok2 && counts(before, after)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// CreationsAndUpdatesIf passes creations, including those of existing objects at the start of the watch, and the updates
// for which counts returns true.
func CreationsAndUpdatesIf[T client.Object](counts func(before, after T) bool) predicate.Funcs {
	funcs := UpdatesIf(counts)
	funcs.CreateFunc = func(event.CreateEvent) bool { return true }
	return funcs
}

// Creations passes creations, including those of existing objects at the start of the watch.
func Creations() predicate.Funcs {
	return CreationsAndUpdatesIf(func(_, _ client.Object) bool { return false })
}
