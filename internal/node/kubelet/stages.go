package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/stages"
)

// stageManager is the field manager of changes by Stages.
const stageManager = "kwok"

var (
	stagesResource = v1alpha1.GroupVersion.WithResource("stages")
	crdsResource   = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
)

// stageWatch holds the Stages of the cluster.
type stageWatch struct {
	player atomic.Pointer[stages.Player] // nil if there are none
	// changed receives a value when the Stages have changed.
	changed chan struct{}
}

// watchStages follows the Stages of the cluster until the context ends. Hardly any cluster has Stages: it then waits
// for their CustomResourceDefinition.
func (k *Kubelet) watchStages(ctx context.Context, client *apiclient.Client) {
	backoff := host.Backoff{First: retryFirst, Max: retryMax}
	for {
		err := k.followStages(ctx, client)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			backoff.Reset()
		} else {
			k.host.Logf("trying again to read Stages: %v", err)
		}
		if host.Sleep(ctx, k.host.Clock, backoff.Next()) != nil {
			return
		}
	}
}

func (k *Kubelet) followStages(ctx context.Context, client *apiclient.Client) error {
	resource := client.Dynamic.Resource(stagesResource)
	list, err := resource.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		k.setStages(nil)
		options := metav1.ListOptions{FieldSelector: "metadata.name=" + node.StagesCRD}
		return awaitChange(ctx, client.Dynamic.Resource(crdsResource), options)
	}
	if err != nil {
		return fmt.Errorf("listing Stages: %w", err)
	}
	all := &v1alpha1.StageList{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), all); err != nil {
		return fmt.Errorf("reading Stages: %w", err)
	}
	k.setStages(all.Items)
	return awaitChange(ctx, resource, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
}

// awaitChange waits for a change, and then returns io.EOF.
func awaitChange(ctx context.Context, objects dynamic.ResourceInterface, options metav1.ListOptions) error {
	w, err := objects.Watch(ctx, options)
	if err != nil {
		return fmt.Errorf("watching for Stages: %w", err)
	}
	defer w.Stop()
	event, open := <-w.ResultChan() // the watch ends with the context
	if _, err := apiclient.ObjectOf[runtime.Object](event, open); err != nil {
		return err
	}
	return io.EOF
}

func (k *Kubelet) setStages(all []v1alpha1.Stage) {
	slices.SortFunc(all, func(a, b v1alpha1.Stage) int { return strings.Compare(a.Name, b.Name) })
	var player *stages.Player
	if len(all) > 0 {
		var err error
		if player, err = stages.New(all); err != nil {
			k.host.Logf("%v", err)
		}
	}
	if before := k.stages.player.Swap(player); before == nil && player == nil {
		return
	}
	select {
	case k.stages.changed <- struct{}{}:
	default:
	}
}

// stagePlay is a Stage for which a Pod waits.
type stagePlay struct {
	player  *stages.Player
	version string
	stage   *stages.Stage
	at      time.Time
}

// playStage plays the current Stage of a Pod if it is due, and reports whether Stages simulate the Pod: then nothing
// else happens to it until it is deleted. The returned step contains when the Stage is due.
func (r *podRunner) playStage(ctx context.Context, pod *corev1.Pod, ips []netip.Addr) (step podStep, byStages bool, err error) {
	key, now := keyOf(pod), r.host.Clock.Now()
	player := r.kubelet.stages.player.Load()
	if player == nil {
		return step, false, nil
	}
	step.status = pod.Status
	play, known := r.plays[key]
	if !known || play.version != pod.ResourceVersion || play.player != player {
		delete(r.plays, key)
		next, err := player.Next(ctx, pod, now)
		if err != nil {
			return step, false, fmt.Errorf("choosing a Stage: %w", err)
		}
		if next == nil {
			return step, pod.DeletionTimestamp == nil && isPlayed(pod), nil
		}
		play = stagePlay{player, pod.ResourceVersion, next, now.Add(next.Delay)}
		r.plays[key] = play
	}
	if now.Before(play.at) {
		step.next = play.at
		return step, true, nil
	}
	delete(r.plays, key)
	err = play.stage.Play(pod, now, stages.Addresses{Node: textOf(r.host.Addresses), Pod: textOf(ips)}, stages.Actions{
		Event: func(kind, reason, message string) {
			r.kubelet.writeEvent(ctx, r.client, podEvent{pod: pod, kind: kind, reason: reason, message: message})
		},
		Delete: func() error { return r.deletePod(ctx, pod) },
		Patch:  func(patch *lifecycle.Patch) error { return r.patchAsStage(ctx, key, patch) },
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return step, true, err
	}
	if err != nil { // a retry would not help: the Stage is played again when the Pod or the Stages change
		r.kubelet.writeEvent(ctx, r.client, podEvent{pod: pod, kind: corev1.EventTypeWarning, reason: "FailedStage",
			message: fmt.Sprintf("Stage %s: %v", play.stage.Name(), err)})
	}
	return step, true, nil
}

func (r *podRunner) patchAsStage(ctx context.Context, key types.NamespacedName, patch *lifecycle.Patch) error {
	var subresources []string
	if patch.Subresource != "" {
		subresources = append(subresources, patch.Subresource)
	}
	return r.patch(ctx, key, patch.Type, patch.Data, metav1.PatchOptions{FieldManager: stageManager}, subresources...)
}

// isPlayed reports whether a Stage has changed a Pod.
func isPlayed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == stageManager })
}

func textOf(addresses []netip.Addr) (all []string) {
	for _, address := range addresses {
		all = append(all, address.String())
	}
	return all
}
