package controllerutils

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// CreateOrPatch creates or patches an object with the changes of mutate. The reader is usually one that reads live.
func CreateOrPatch[T client.Object](ctx context.Context, c client.Client, live client.Reader, obj T, mutate func(T) error) error {
	key := client.ObjectKeyFromObject(obj)
	readErr := live.Get(ctx, key, obj)
	if client.IgnoreNotFound(readErr) != nil {
		return fmt.Errorf("reading %T %s: %w", obj, key, readErr)
	}
	before := obj.DeepCopyObject().(T)
	if err := mutate(obj); err != nil {
		return err
	}
	var err error
	switch {
	case readErr != nil:
		err = c.Create(ctx, obj)
	case !equality.Semantic.DeepEqual(before, obj):
		err = c.Patch(ctx, obj, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("writing %T %s: %w", obj, key, err)
	}
	return nil
}
