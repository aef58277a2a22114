package controllerutils

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Base has what the controllers of a seed's gardenlet need to reach the garden and the seed.
type Base struct {
	GardenClient, SeedClient client.Client
	// GardenReader and SeedReader read directly from the API servers, not from a cache.
	GardenReader, SeedReader client.Reader
	// Recorder writes events into the garden.
	Recorder events.EventRecorder
	Clock    clock.WithTicker
	SeedName string
}

// Own reports whether an object has the name of the seed, as its Seed and its Gardenlet have.
func (b *Base) Own(obj client.Object) bool { return obj.GetName() == b.SeedName }

// Updates passes the updates for which the function returns true, creations and deletions. Callers replace the functions of
// the events that are not to pass.
func Updates[T client.Object](passes func(before, after T) bool) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return ok1 && ok2 && passes(before, after)
	}}
}

// UpdatesOnly passes the updates for which the function returns true, and nothing else.
func UpdatesOnly[T client.Object](passes func(before, after T) bool) predicate.Funcs {
	funcs := Updates(passes)
	funcs.CreateFunc = func(event.CreateEvent) bool { return false }
	funcs.DeleteFunc = func(event.DeleteEvent) bool { return false }
	return funcs
}

// Creations passes creations, including those of existing objects at the start of the watch, and nothing else.
func Creations() predicate.Funcs {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Deletions passes deletions, and nothing else.
func Deletions() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}
