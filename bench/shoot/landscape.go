package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/bench/harness"
)

// landscape is a landscape with a seed.
type landscape struct{ *harness.Landscape }

func startLandscape(ctx context.Context) (landscape, error) {
	started, err := harness.StartLandscape(ctx)
	return landscape{started}, err
}

func (l landscape) create(ctx context.Context, name string, hibernated bool) error {
	return l.CreateShoot(ctx, name, 2, map[string]any{"hibernation": map[string]any{"enabled": hibernated}})
}

// createMany creates shoots until there are count, eight at a time, and waits until all have succeeded.
func (l landscape) createMany(ctx context.Context, prefix string, from, count int, hibernated bool) error {
	if err := harness.InParallel(ctx, 8, count-from, func(ctx context.Context, i int) error {
		return l.create(ctx, fmt.Sprintf("%s%d", prefix, from+i), hibernated)
	}); err != nil {
		return err
	}
	return harness.Poll(ctx, 20*time.Minute, func() (bool, error) { return l.succeeded(ctx, prefix) == count, nil })
}

// read reads the Shoots, or one of them.
func (l landscape) read(ctx context.Context, path string, into any) error {
	data, err := l.Kube.CoreV1().RESTClient().Get().AbsPath(harness.ShootsPath + path).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

type shoot struct {
	Metadata struct{ Name string }
	Status   struct {
		LastOperation       struct{ State string }
		AdvertisedAddresses []struct{ Name, URL string }
	}
}

// succeeded returns how many shoots with that prefix have succeeded.
func (l landscape) succeeded(ctx context.Context, prefix string) (count int) {
	var list struct{ Items []shoot }
	if l.read(ctx, "", &list) != nil {
		return 0
	}
	for _, s := range list.Items {
		if strings.HasPrefix(s.Metadata.Name, prefix) && s.Status.LastOperation.State == "Succeeded" {
			count++
		}
	}
	time.Sleep(time.Duration(len(list.Items)) * time.Millisecond) // a long list is requested less often
	return count
}

// answers waits until a shoot has succeeded and its API server says that it is ready.
func (l landscape) answers(ctx context.Context, name string) error {
	var s shoot
	err := harness.Poll(ctx, 5*time.Minute, func() (bool, error) {
		return l.read(ctx, "/"+name, &s) == nil && s.Status.LastOperation.State == "Succeeded" &&
			len(s.Status.AdvertisedAddresses) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("shoot %s: %w", name, err)
	}
	client, err := l.Client(ctx, "shoot", "dev/"+name)
	if err != nil {
		return err
	}
	return harness.Poll(ctx, time.Minute, func() (bool, error) {
		return client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
}
