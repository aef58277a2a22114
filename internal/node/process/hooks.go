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
)

func (c *container) postStartHook() *corev1.LifecycleHandler {
	if c.spec.Lifecycle == nil {
		return nil
	}
	return c.spec.Lifecycle.PostStart
}

// postStart runs the hook of a container that has just started, which counts as started after it. If the hook fails, the
// container is ended.
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

// preStop runs the hook of a container that is to end, for as long as its grace period and its process last.
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

// runHook runs a hook to its end. A program is run as for a probe.
func (c *container) runHook(ctx context.Context, hook *corev1.LifecycleHandler) error {
	if hook.Sleep != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.pod.runner.cfg.Clock.After(time.Duration(hook.Sleep.Seconds) * time.Second):
			return nil
		}
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

// getHook sends the request of a hook. Of the answer, the status does not count: a kubelet ignores it.
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

// stop ends a process within the time that is left: first its hook runs.
func (c *container) stop(ch *child, left func() time.Duration) {
	c.preStop(ch, left())
	ch.stop(c.pod.runner.cfg.Clock.After(left()))
}
