package component

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// The predicates with a function counts pass the updates for which it returns true, but no updates of objects of other types
// than T. Creations include the existing objects at the start of a watch. Generic events never pass.

// ChangesIf passes creations, deletions, and the updates that count.
func ChangesIf[T client.Object](counts func(before, after T) bool) predicate.Funcs {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(T)
			after, ok2 := e.ObjectNew.(T)
			return ok1 && ok2 && counts(before, after)
		},
		GenericFunc: never[event.GenericEvent],
	}
}

// CreationsAndUpdatesIf passes creations, and the updates that count.
func CreationsAndUpdatesIf[T client.Object](counts func(before, after T) bool) predicate.Funcs {
	funcs := ChangesIf(counts)
	funcs.DeleteFunc = never
	return funcs
}

// DeletionsAndUpdatesIf passes deletions, and the updates that count.
func DeletionsAndUpdatesIf[T client.Object](counts func(before, after T) bool) predicate.Funcs {
	funcs := ChangesIf(counts)
	funcs.CreateFunc = never
	return funcs
}

// UpdatesIf passes only the updates that count.
func UpdatesIf[T client.Object](counts func(before, after T) bool) predicate.Funcs {
	funcs := ChangesIf(counts)
	funcs.CreateFunc, funcs.DeleteFunc = never, never
	return funcs
}

// Creations passes only creations.
func Creations() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: never[event.UpdateEvent], DeleteFunc: never[event.DeleteEvent], GenericFunc: never[event.GenericEvent]}
}

// Deletions passes only deletions.
func Deletions() predicate.Funcs {
	return predicate.Funcs{CreateFunc: never[event.CreateEvent], UpdateFunc: never[event.UpdateEvent], GenericFunc: never[event.GenericEvent]}
}

func never[E any](E) bool { return false }
