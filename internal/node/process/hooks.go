package process

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"

	"github.com/gardenlite/gardenlite/internal/node/host"
)

func (c *container) postStartHook() *corev1.LifecycleHandler {
	if c.spec.Lifecycle == nil {
		return nil
	}
	return c.spec.Lifecycle.PostStart
}

// postStart runs the postStart hook of a container, which counts as started only after it. If the hook fails, postStart
// stops the container and returns false.
func (c *container) postStart(ctx context.Context) bool {
	hook := c.postStartHook()
	if hook == nil {
		return true
	}
	if err := c.runHook(ctx, hook); err != nil {
		if ctx.Err() == nil {
			c.event(corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed: "+err.Error())
			c.kill(Grace(c.pod.latest()))
		}
		return false
	}
	c.change(func() { c.started = c.spec.StartupProbe == nil })
	return true
}

// preStop runs the preStop hook of a container that is stopped, until the grace period or the process has ended.
func (c *container) preStop(ch *child, grace time.Duration) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil || grace <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.runHook(ctx, c.spec.Lifecycle.PreStop) }()
	var err error
	select {
	case err = <-ended:
	case <-ch.done:
		cancel()
		<-ended
	case <-c.pod.runner.cfg.Clock.After(grace):
		cancel()
		<-ended
		err = errors.New("it took longer than the grace period")
	}
	if err != nil {
		c.event(corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed: "+err.Error())
	}
}

// runHook runs a hook to its end. An exec hook runs the mapped program, as an exec probe does.
func (c *container) runHook(ctx context.Context, hook *corev1.LifecycleHandler) error {
	if hook.Sleep != nil {
		return host.Sleep(ctx, c.pod.runner.cfg.Clock, time.Duration(hook.Sleep.Seconds)*time.Second)
	}
	if hook.HTTPGet != nil {
		return c.getHook(ctx, hook.HTTPGet)
	}
	result, output, err := c.runProbe(ctx, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: hook.Exec}, TimeoutSeconds: math.MaxInt32})
	if err == nil && result == probe.Failure {
		err = errors.New(output)
	}
	return err
}

// getHook sends the HTTP request of a hook. It ignores the status of the response, as a kubelet does.
func (c *container) getHook(ctx context.Context, action *corev1.HTTPGetAction) error {
	if _, err := c.probedPort(action.Host, action.Port); err != nil {
		return err
	}
	request, err := httpprobe.NewRequestForHTTPGetAction(action, c.spec, loopback, "lifecycle")
	if err != nil {
		return err
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: httpprobe.RedirectChecker(false),
	}
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// stop runs the preStop hook, and then stops the process, within the time that is left.
func (c *container) stop(ch *child, left func() time.Duration) {
	c.preStop(ch, left())
	ch.stop(c.pod.runner.cfg.Clock.After(left()))
}
