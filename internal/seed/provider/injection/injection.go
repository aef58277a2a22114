package injection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// AnnotationDelay is how long each operation takes.
	AnnotationDelay = "gardenlite.dev/delay"
	// AnnotationFail is how often, and with what, operations fail.
	AnnotationFail = "gardenlite.dev/fail"
	// AnnotationFailed is the value of AnnotationFail that has had its one failure.
	AnnotationFailed = "gardenlite.dev/failed"
	// AnnotationStarted is when the operation began that is delayed.
	AnnotationStarted = "gardenlite.dev/started"

	// MaxDelay is the longest delay.
	MaxDelay = 24 * time.Hour
	// MaxText is the length of the longest text.
	MaxText = 1024
)

// codes are all of Gardener's error codes.
var codes = []corev1beta1.ErrorCode{
	corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraQuotaExceeded,
	corev1beta1.ErrorInfraRateLimitsExceeded, corev1beta1.ErrorInfraDependencies, corev1beta1.ErrorRetryableInfraDependencies,
	corev1beta1.ErrorInfraResourcesDepleted, corev1beta1.ErrorCleanupClusterResources, corev1beta1.ErrorConfigurationProblem,
	corev1beta1.ErrorRetryableConfigurationProblem, corev1beta1.ErrorProblematicWebhook,
}

// Injection is what the annotations of an object say.
type Injection struct {
	Delay time.Duration
	// Failure is how the operation is to fail, nil if it is not to.
	Failure *Failure
}

// Failure is a failure that is to happen.
type Failure struct {
	Once bool
	Code corev1beta1.ErrorCode // "" for none
	Text string
}

// Parse reads the annotations of an object. A failure that it has had already is left out.
func Parse(obj metav1.Object) (Injection, error) {
	var injection Injection
	var err error
	if value, ok := obj.GetAnnotations()[AnnotationDelay]; ok {
		if injection.Delay, err = parseDelay(value); err != nil {
			return Injection{}, err
		}
	}
	if value, ok := obj.GetAnnotations()[AnnotationFail]; ok {
		failure, err := parseFailure(value)
		if err != nil {
			return Injection{}, err
		}
		if had, ok := obj.GetAnnotations()[AnnotationFailed]; !failure.Once || !ok || had != value {
			injection.Failure = failure
		}
	}
	return injection, nil
}

func parseDelay(value string) (time.Duration, error) {
	delay, err := time.ParseDuration(value)
	if err != nil || delay < 0 || delay > MaxDelay {
		return 0, fmt.Errorf("the annotation %s is %q; give it a duration from 0s to 24h, for example 90s, or remove it", AnnotationDelay, value)
	}
	return delay, nil
}

func parseFailure(value string) (*Failure, error) {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("the annotation %s is %q; %s", AnnotationFail, value, fmt.Sprintf(format, args...))
	}
	how, rest, _ := strings.Cut(value, ":")
	failure := &Failure{Once: how == "once", Text: "failure injected by the annotation " + AnnotationFail}
	if !failure.Once && how != "always" {
		return nil, wrong("give it once or always, then maybe a colon with an error code or a text, or remove it")
	}
	rest = strings.TrimSpace(rest)
	if first, text, _ := strings.Cut(rest, " "); strings.HasPrefix(first, "ERR_") {
		failure.Code, rest = corev1beta1.ErrorCode(first), strings.TrimSpace(text)
		if !slices.Contains(codes, failure.Code) {
			return nil, wrong("there is no error code %s; the codes are %v", failure.Code, codes)
		}
	}
	if len(rest) > MaxText {
		return nil, wrong("its text has %d characters; at most %d are allowed", len(rest), MaxText)
	}
	if rest != "" {
		failure.Text = rest
	}
	return failure, nil
}

// passed are the annotations that users set.
var passed = []string{AnnotationDelay, AnnotationFail}

// Same says whether two objects have the same annotations from users.
func Same(a, b metav1.Object) bool {
	for _, name := range passed {
		valueA, okA := a.GetAnnotations()[name]
		valueB, okB := b.GetAnnotations()[name]
		if okA != okB || valueA != valueB {
			return false
		}
	}
	return true
}

// Pass sets the annotations from users on an object as they are on another. What was set on the object itself stays as long
// as the other has never said anything about it.
func Pass(from, to metav1.Object) {
	annotations := maps.Clone(to.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, name := range passed {
		mark := name + "-from-garden"
		if value, ok := from.GetAnnotations()[name]; ok {
			annotations[name], annotations[mark] = value, "true"
		} else if annotations[mark] != "" {
			delete(annotations, name)
			delete(annotations, mark)
		}
	}
	if len(annotations) > 0 {
		to.SetAnnotations(annotations)
	} else {
		to.SetAnnotations(nil)
	}
}
