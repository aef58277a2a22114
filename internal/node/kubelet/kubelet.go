package kubelet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/process"
)

const (
	// leasePeriod, leaseSeconds and statusPeriod are Kubernetes' defaults.
	leasePeriod  = 10 * time.Second
	leaseSeconds = 40
	statusPeriod = 5 * time.Minute

	retryFirst = 500 * time.Millisecond
	retryMax   = 30 * time.Second
)

// errRenewed says that there is a new certificate, which requires a new connection.
var errRenewed = errors.New("the kubelet has a new certificate")

// Kubelet is the kubelet of one machine.
type Kubelet struct {
	host host.Host
	// bootID is new with each start of the kubelet.
	bootID string
	// uid is the UID of the Node; lease is the Lease that was written last. Both are reset when they may be outdated.
	uid   types.UID
	lease *coordinationv1.Lease
	// running are the Pods in phase Running.
	running runningPods
	// processes are the Pods that run as processes.
	processes *processes
	stages    stageWatch
	// firstPod is called for each Pod. The first call starts the watch of Stages.
	firstPod func()
}

// Run runs the kubelet until the context ends. It retries after every error, except that of a missing or invalid
// configuration. Without a runner, all Pods are simulated.
func Run(ctx context.Context, h host.Host, runner *process.Runner) error {
	k := &Kubelet{host: h, bootID: string(uuid.NewUUID()), processes: newProcesses(runner),
		stages: stageWatch{changed: make(chan struct{}, 1)}}
	data, err := h.Files.ReadFile(node.PathKubeletConfig)
	if err != nil {
		return fmt.Errorf("reading the configuration of the kubelet: %w", err)
	}
	config, err := node.ParseKubeletConfig(data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var writing sync.WaitGroup
	writing.Go(func() { k.writeEvents(ctx) })
	defer writing.Wait()
	defer cancel() // also in a panic, after which the machine starts the kubelet again
	defer k.processes.stop()
	backoff := host.Backoff{First: retryFirst, Max: retryMax}
	for {
		err := k.work(ctx, config, &backoff)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errRenewed) {
			backoff.Reset()
			continue
		}
		wait := backoff.Next()
		h.Logf("going on in %s: %v", wait.Round(time.Millisecond), err)
		if host.Sleep(ctx, h.Clock, wait) != nil {
			return nil
		}
	}
}

// work obtains a certificate if there is none, and registers and updates the Node until an error or a new certificate.
func (k *Kubelet) work(ctx context.Context, config node.KubeletConfig, backoff *host.Backoff) error {
	var err error
	if config.APIServer, err = k.host.Server(config.APIServer); err != nil {
		return err
	}
	data, cert, err := k.certificate()
	if err != nil {
		return err
	}
	if cert == nil {
		if err := k.bootstrap(ctx, config); err != nil {
			return err
		}
		return errRenewed
	}
	// Once the Node is ready, the bootstrap token is removed. So the certificate must be on the disk before it is used.
	if err := k.host.Files.Sync(); err != nil {
		return fmt.Errorf("keeping the certificate of the kubelet: %w", err)
	}
	client, err := apiclient.New(apiclient.Credentials{Server: config.APIServer, CA: []byte(config.CA), Certificate: data})
	if err != nil {
		return err
	}
	defer client.Close()
	k.processes.client.Store(client)
	k.uid, k.lease = "", nil
	if err := k.patchNode(ctx, client, config); err != nil {
		return err
	}
	backoff.Reset()
	ctx, cancel := context.WithCancel(ctx)
	var pods sync.WaitGroup
	k.firstPod = sync.OnceFunc(func() { pods.Go(func() { k.watchStages(ctx, client) }) })
	pods.Go(func() { k.runPods(ctx, client, config) })
	pods.Go(func() { k.serve(ctx, config) })
	defer pods.Wait()
	defer cancel()
	rotation := cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) / 100 * rotateAfter)
	return k.heartbeat(ctx, client, config, rotation)
}

// patchNode updates the Node and its Lease.
func (k *Kubelet) patchNode(ctx context.Context, client *apiclient.Client, config node.KubeletConfig) error {
	if err := k.syncNode(ctx, client, config); err != nil {
		return err
	}
	return k.ensureLease(ctx, client)
}

// heartbeat renews the Lease and, less often, the Node's status. It returns when there is a new certificate, or when the API
// server does not accept the current one any more. Other errors are retried with the next beat.
func (k *Kubelet) heartbeat(ctx context.Context, client *apiclient.Client, config node.KubeletConfig, rotation time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer cancel()
	renewed, requested := make(chan error, 1), false
	statusDue := k.host.Clock.Now().Add(statusPeriod)
	// The jitter spreads the beats of nodes that start together.
	timer := k.host.Clock.NewTimer(leasePeriod/2 + rand.N(leasePeriod/2))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-renewed:
			if err == nil {
				return errRenewed
			}
			if apierrors.IsUnauthorized(err) {
				return k.discard(err)
			}
			k.host.Logf("trying again in %s: %v", requestLife, err)
			rotation, requested = k.host.Clock.Now().Add(requestLife), false
			continue
		case <-timer.C():
		}
		var err error
		now := k.host.Clock.Now()
		if !requested && !now.Before(rotation) { // the Lease is renewed while the request waits for its approval
			requested = true
			renewing.Go(func() { renewed <- k.request(ctx, client, config) })
		}
		switch {
		case !now.Before(statusDue) || k.lease == nil:
			if err = k.patchNode(ctx, client, config); err == nil {
				statusDue = now.Add(statusPeriod)
			}
		default:
			err = k.renewLease(ctx, client)
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the Lease was deleted or replaced, and perhaps the Node as well
			err = k.patchNode(ctx, client, config)
		}
		if apierrors.IsUnauthorized(err) {
			return k.discard(err)
		}
		if err != nil && ctx.Err() == nil {
			k.host.Logf("trying again in %s: %v", leasePeriod, err)
		}
		timer.Reset(leasePeriod)
	}
}

// discard removes a certificate that the API server refuses, if a bootstrap kubeconfig is there to obtain another one.
func (k *Kubelet) discard(refused error) error {
	if _, err := k.host.Files.ReadFile(node.PathKubeconfigBootstrap); err == nil {
		if err := k.host.Files.Remove(node.PathKubeletClient); err != nil {
			return fmt.Errorf("removing the certificate of the kubelet: %w", err)
		}
	}
	return refused
}
