// Package stages plays KWOK's Stages for Pods: which Stage a Pod is in, when its delay is over, and what it does with
// the Pod. Users of the cluster write Stages, so their templates may call only the functions of a fixed list, and all
// their resources are limited. It imports nothing of the project.
package stages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

const (
	// MaxStages is the maximum number of Stages; the first ones by name count.
	MaxStages = 100
	// maxStage is the maximum size of the spec of a Stage, in bytes: expressions are compiled recursively.
	maxStage = 64 << 10
	// timeout limits the evaluation of all Stages' expressions, and of the templates of one Stage, for one Pod. Those of
	// KWOK take less than a millisecond; on a busy machine, most of the time is that of others.
	timeout = time.Second
)

// errUnsupported is the error for parts of Stages that require other rights than a kubelet's, or cannot be interrupted.
var errUnsupported = errors.New("apply, impersonation and CEL expressions are not supported")

// Player plays the Stages of a cluster.
type Player struct{ stages lifecycle.Lifecycle }

// New returns a player of the Stages for Pods. It is valid also with an error, which describes Stages that are left out.
func New(all []v1alpha1.Stage) (*Player, error) {
	p := &Player{}
	var failures []error
	for i := range all {
		if all[i].Namespace != "" { // of a CRD that is not KWOK's: who writes in one namespace would rule the Pods of all
			continue
		}
		if ref := all[i].Spec.ResourceRef; ref.Kind != "Pod" || ref.APIGroup != "v1" && ref.APIGroup != "" {
			continue
		}
		if len(p.stages) == MaxStages {
			failures = append(failures, fmt.Errorf("at most %d Stages for Pods count", MaxStages))
			break
		}
		stage, err := read(&all[i])
		if err != nil {
			failures = append(failures, fmt.Errorf("stage %s is left out: %w", all[i].Name, err))
		} else if stage != nil {
			p.stages = append(p.stages, stage)
		}
	}
	return p, errors.Join(failures...)
}

// compiling is held while expressions are compiled: KWOK's library has a map of types for the whole process, without a lock.
var compiling sync.Mutex

// read converts a Stage and compiles its expressions. It returns nil for a Stage without a selector: it selects no Pod.
func read(stage *v1alpha1.Stage) (_ *lifecycle.Stage, err error) {
	defer recovered(&err)
	if text, err := json.Marshal(stage.Spec); err != nil {
		return nil, err
	} else if len(text) > maxStage {
		return nil, fmt.Errorf("it has more than %d bytes", maxStage)
	}
	internal, err := internalversion.ConvertToInternalStage(stage)
	if err != nil {
		return nil, err
	}
	if err := supported(&internal.Spec); err != nil {
		return nil, err
	}
	read := lifecycle.NewStage(internal)
	if read == nil {
		return nil, nil
	}
	compiling.Lock()
	defer compiling.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err = lifecycle.Lifecycle{read}.Match(ctx, event(&corev1.Pod{})) // this compiles its expressions
	return read, err
}

func supported(spec *internalversion.StageSpec) error {
	from := []*internalversion.ExpressionFrom{spec.WeightFrom}
	if spec.Delay != nil {
		from = append(from, spec.Delay.DurationFrom, spec.Delay.JitterDurationFrom)
	}
	var jq []string
	for _, f := range from {
		switch {
		case f != nil && f.CEL != nil:
			return errUnsupported
		case f != nil && f.JQ != nil:
			jq = append(jq, f.JQ.Expression)
		}
	}
	if spec.Selector != nil {
		for _, expression := range spec.Selector.MatchExpressions {
			switch {
			case expression.CEL != nil:
				return errUnsupported
			case expression.JQ != nil:
				jq = append(jq, expression.JQ.Key)
			}
		}
	}
	for _, step := range spec.Steps {
		if step.Apply != nil || step.Patch != nil && step.Patch.Impersonation != nil {
			return errUnsupported
		}
	}
	for _, expression := range jq {
		if err := checkJQ(expression); err != nil {
			return err
		}
	}
	return nil
}

func event(pod *corev1.Pod) *lifecycle.Event {
	return &lifecycle.Event{Labels: pod.Labels, Annotations: pod.Annotations, Data: pod}
}

// Stage is the next Stage of a Pod.
type Stage struct {
	stage *lifecycle.Stage
	// Delay is the time until the Stage is played.
	Delay time.Duration
}

// Name is the name of the Stage.
func (s *Stage) Name() string { return s.stage.Name() }

// Next returns the next Stage of a Pod, nil if no Stage selects it.
func (p *Player) Next(ctx context.Context, pod *corev1.Pod, now time.Time) (_ *Stage, err error) {
	defer recovered(&err)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	of := event(pod)
	stage, err := p.stages.Match(ctx, of)
	if err != nil || stage == nil {
		return nil, err
	}
	delay, _, err := stage.Delay(ctx, of, now)
	return &Stage{stage, max(delay, 0)}, err
}

// recovered turns a panic into an error: KWOK panics, for example, if the sum of weights is negative.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v", p)
	}
}

// Actions are the functions with which a Stage acts on a Pod.
type Actions struct {
	Event  func(kind, reason, message string)
	Delete func() error
	Patch  func(patch *lifecycle.Patch) error
}

// Play plays the Stage for a Pod.
func (s *Stage) Play(pod *corev1.Pod, now time.Time, addresses Addresses, do Actions) (err error) {
	defer recovered(&err)
	_, err = s.stage.DoSteps(0, pod.Finalizers, pod, newRenderer(now, addresses),
		func(event *internalversion.StageEvent) error {
			do.Event(event.Type, event.Reason, event.Message)
			return nil
		},
		do.Delete, do.Patch, func(*lifecycle.Apply) error { return errUnsupported })
	return err
}
