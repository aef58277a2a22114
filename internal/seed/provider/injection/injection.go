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
	// AnnotationFailed is the value of AnnotationFail that has already caused its one failure.
	AnnotationFailed = "gardenlite.dev/failed"
	// AnnotationStarted is when the delayed operation started.
	AnnotationStarted = "gardenlite.dev/started"

	// MaxDelay is the longest delay.
	MaxDelay = 24 * time.Hour
	// MaxText is the maximum length of the text.
	MaxText = 1024
)

// codes are all of Gardener's error codes.
var codes = []corev1beta1.ErrorCode{
	corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraQuotaExceeded,
	corev1beta1.ErrorInfraRateLimitsExceeded, corev1beta1.ErrorInfraDependencies, corev1beta1.ErrorRetryableInfraDependencies,
	corev1beta1.ErrorInfraResourcesDepleted, corev1beta1.ErrorCleanupClusterResources, corev1beta1.ErrorConfigurationProblem,
	corev1beta1.ErrorRetryableConfigurationProblem, corev1beta1.ErrorProblematicWebhook,
}

// Injection is the delay and the failure that the annotations of an object request.
type Injection struct {
	Delay time.Duration
	// Failure is how the operation fails, nil if it does not.
	Failure *Failure
}

// Failure is a requested failure.
type Failure struct {
	Once bool
	Code corev1beta1.ErrorCode // "" for none
	Text string
}

// Parse reads the annotations of an object. It omits a failure that has already happened.
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

// passed are the annotations of users, which the gardenlet passes on.
var passed = []string{AnnotationDelay, AnnotationFail}

// Same reports whether two objects have the same annotations of users.
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

// Pass copies the annotations of users from one object to another, and removes those that it copied before. An annotation
// that was set on the target itself is kept as long as the source never has it.
func Pass(from, to metav1.Object) {
	annotations := map[string]string{}
	maps.Copy(annotations, to.GetAnnotations())
	for _, name := range passed {
		mark := name + "-from-garden"
		if value, ok := from.GetAnnotations()[name]; ok {
			annotations[name], annotations[mark] = value, "true"
		} else if annotations[mark] != "" {
			delete(annotations, name)
			delete(annotations, mark)
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	to.SetAnnotations(annotations)
}
