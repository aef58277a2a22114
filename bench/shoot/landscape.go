package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// landscape is a landscape with a seed. It runs until Remove.
type landscape struct {
	*harness.Landscape
	client kubernetes.Interface
}

func startLandscape(ctx context.Context) (*landscape, error) {
	started, err := harness.StartLandscape(ctx)
	if err != nil {
		return nil, err
	}
	client, err := started.Client(ctx)
	if err != nil {
		started.Remove()
		return nil, err
	}
	return &landscape{started, client}, nil
}

func (l *landscape) create(ctx context.Context, name string, hibernated bool) error {
	return harness.CreateShoot(ctx, l.client, name, 2, map[string]any{"hibernation": map[string]any{"enabled": hibernated}})
}

// read reads the Shoots, or one of them.
func (l *landscape) read(ctx context.Context, path string, into any) error {
	data, err := l.client.CoreV1().RESTClient().Get().AbsPath(harness.ShootsPath + path).DoRaw(ctx)
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
func (l *landscape) succeeded(ctx context.Context, prefix string) (count int) {
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
func (l *landscape) answers(ctx context.Context, name string) error {
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
