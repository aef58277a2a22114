package kubecontrollers

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	// leaseName is the name of the Lease in kube-system, the same as that of kube-controller-manager.
	leaseName = "kube-controller-manager"
	// The times are Kubernetes'. Another process takes over within 20 s after the leader died.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Running is a set of controllers that run in the background.
type Running struct {
	cancel  context.CancelFunc
	stopped chan struct{}
}

// Start runs controllers until Stop is called, with cfg.LeaderElection only while this process is the leader.
func Start(cfg Config) (*Running, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Running{cancel: cancel, stopped: make(chan struct{})}
	run := func() { elected(ctx, cfg) }
	if !cfg.LeaderElection {
		controllers, err := New(ctx, cfg)
		if err != nil {
			cancel()
			return nil, err
		}
		run = func() { controllers.Run(ctx) }
	}
	go func() {
		defer close(r.stopped)
		run()
	}()
	return r, nil
}

// Stop stops the controllers and waits for their end. It does nothing if r is nil.
func (r *Running) Stop() {
	if r != nil {
		r.cancel()
		<-r.stopped
	}
}

// elected runs controllers whenever this process is the leader.
func elected(ctx context.Context, cfg Config) {
	log := klog.FromContext(ctx).WithName("kubecontrollers")
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := lead(ctx, cfg); err != nil {
			log.Error(err, "Cannot take part in the election of who runs the controllers; trying again")
		}
	}, retryPeriod)
}

// lead waits until this process is the leader, runs the controllers, and returns when it no longer is.
func lead(ctx context.Context, cfg Config) error {
	c := clients{config: cfg.ClientConfig}
	defer c.close()
	client, err := c.shared()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	leading := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: leaseName}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + uuid.NewString()},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true, Name: leaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { leading <- ctx }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("preparing the election: %w", err)
	}
	// The lease is released only after the controllers have ended.
	electing, stopElection := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	select {
	case <-ctx.Done():
	case term := <-leading:
		err = runDuring(ctx, term, cfg)
	}
	stopElection()
	<-ended
	return err
}

// runDuring runs controllers until one of the contexts ends.
func runDuring(ctx, term context.Context, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term, cancel)()
	controllers, err := New(ctx, cfg)
	if err != nil {
		return err
	}
	controllers.Run(ctx)
	return nil
}
