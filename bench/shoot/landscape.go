package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const shootsPath = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots"

// landscape is a landscape with a seed. It runs until Stop.
type landscape struct {
	*harness.Landscape
	client *http.Client
	host   string
}

func startLandscape(ctx context.Context, binary string) (*landscape, error) {
	started, err := harness.StartLandscape(ctx, binary)
	if err != nil {
		return nil, err
	}
	l := &landscape{Landscape: started}
	config, err := l.Config()
	if err == nil {
		l.host = config.Host
		l.client, err = rest.HTTPClientFor(config)
	}
	if err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

func (l *landscape) create(name string, hibernated bool) error {
	body := fmt.Sprintf(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":%q,"namespace":"garden-dev"},"spec":{
		"cloudProfile":{"kind":"CloudProfile","name":"local"},"credentialsBindingName":"sample","region":"local","purpose":"testing",
		"hibernation":{"enabled":%t},"kubernetes":{"version":"1.36.0"},
		"networking":{"type":"local","nodes":"10.10.0.0/16","pods":"10.11.0.0/16","services":"10.12.0.0/16"},
		"provider":{"type":"local","workers":[{"name":"worker","minimum":2,"maximum":3,"machine":{"type":"local",
			"image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]}]}}}`,
		name, hibernated)
	response, err := l.client.Post(l.host+shootsPath, "application/json", bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("creating shoot %s: %s: %s", name, response.Status, answer)
	}
	return nil
}

type shoot struct {
	Metadata struct{ Name string }
	Status   struct {
		LastOperation       struct{ State string }
		AdvertisedAddresses []struct{ Name, URL string }
	}
}

// succeeded returns how many shoots with that prefix have succeeded.
func (l *landscape) succeeded(prefix string) (count int) {
	data, err := harness.Read(l.client, l.host+shootsPath, "")
	if err != nil {
		return 0
	}
	var list struct{ Items []shoot }
	if json.Unmarshal(data, &list) != nil {
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
		data, err := harness.Read(l.client, l.host+shootsPath+"/"+name, "")
		return err == nil && json.Unmarshal(data, &s) == nil && s.Status.LastOperation.State == "Succeeded" &&
			len(s.Status.AdvertisedAddresses) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("shoot %s: %w", name, err)
	}
	data, err := l.Run(ctx, "kubeconfig", "shoot", "dev/"+name)
	if err != nil {
		return fmt.Errorf("asking for a kubeconfig of shoot %s: %w", name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return harness.Poll(ctx, time.Minute, func() (bool, error) { return harness.Get(client, config.Host+"/readyz", "") == nil, nil })
}
