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
	// AnnotationFailed is the value of AnnotationFail that has already caused its one failure. On a Cluster, it says
	// before that which extension resource of the Shoot has the failure.
	AnnotationFailed = "gardenlite.dev/failed"
	// AnnotationStarted is when the delayed operation started.
	AnnotationStarted = "gardenlite.dev/started"

	// MaxDelay is the longest delay.
	MaxDelay = 24 * time.Hour
	// MaxText is the maximum length of the text.
	MaxText = 1024
)

// Codes are all of Gardener's error codes.
var Codes = []corev1beta1.ErrorCode{
	corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraQuotaExceeded,
	corev1beta1.ErrorInfraRateLimitsExceeded, corev1beta1.ErrorInfraDependencies, corev1beta1.ErrorRetryableInfraDependencies,
	corev1beta1.ErrorInfraResourcesDepleted, corev1beta1.ErrorCleanupClusterResources, corev1beta1.ErrorConfigurationProblem,
	corev1beta1.ErrorRetryableConfigurationProblem, corev1beta1.ErrorProblematicWebhook,
}

// Kinds are the kinds of extension resources of a Shoot that can be given a delay and a failure of their own.
// generalKinds are those that the annotations without a kind are for.
var (
	Kinds = []string{"ContainerRuntime", "ControlPlane", "DNSRecord", "Extension", "Infrastructure", "Network",
		"OperatingSystemConfig", "Worker"}
	generalKinds = []string{"Infrastructure", "Worker"}
)

// AnnotationFor returns the name of AnnotationDelay or AnnotationFail on a Shoot for its resources of one kind.
func AnnotationFor(annotation, kind string) string {
	if kind == "" {
		return annotation
	}
	return annotation + "." + kind
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
	// Record is the annotation of the Cluster that records the failure; "" if it is not that of a Shoot and happens once.
	Record string
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
		source := obj.GetAnnotations()[AnnotationFail+fromGarden]
		if kind, ok := strings.CutPrefix(source, AnnotationFail); ok && failure.Once {
			failure.Record = AnnotationFailed + kind
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
	failure := &Failure{Once: how == "once" || strings.HasPrefix(how, "once."),
		Text: "failure injected by the annotation " + AnnotationFail}
	if !failure.Once && how != "always" {
		return nil, wrong("give it once or always, then maybe a colon with an error code or a text, or remove it")
	}
	rest = strings.TrimSpace(rest)
	if first, text, _ := strings.Cut(rest, " "); strings.HasPrefix(first, "ERR_") {
		failure.Code, rest = corev1beta1.ErrorCode(first), strings.TrimSpace(text)
		if !slices.Contains(Codes, failure.Code) {
			return nil, wrong("there is no error code %s; the codes are %v", failure.Code, Codes)
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

// Claim returns the record of a failure of a Shoot that happens once, for the extension resource that is the first to
// have it, and whether this one has it. Other resources do not fail if the record is another one's.
func (f *Failure) Claim(records map[string]string, kind string, obj metav1.Object) (record string, isOwn bool) {
	value := obj.GetAnnotations()[AnnotationFail]
	record = kind + "/" + obj.GetName() + " " + value
	_, recorded, _ := strings.Cut(records[f.Record], " ")
	return record, recorded != value || records[f.Record] == record
}

// ForgetClaims removes the records of failures that a Shoot does not request any more from its Cluster.
func ForgetClaims(shoot, cluster metav1.Object) {
	annotations := maps.Clone(cluster.GetAnnotations())
	maps.DeleteFunc(annotations, func(name, _ string) bool {
		kind, ok := strings.CutPrefix(name, AnnotationFailed)
		_, requested := shoot.GetAnnotations()[AnnotationFail+kind]
		return ok && !requested
	})
	cluster.SetAnnotations(annotations)
}

// Value returns the value of AnnotationFail for a failure. With an ID that was not used before, a failure that happens
// once happens although an equal one has.
func (f *Failure) Value(id string) (string, error) {
	switch {
	case f.Code != "" && !slices.Contains(Codes, f.Code):
		return "", fmt.Errorf("there is no error code %q; the codes are %v", f.Code, Codes)
	case f.Code == "" && strings.HasPrefix(f.Text, "ERR_"):
		return "", fmt.Errorf("the message %q begins like an error code: give that as the code", f.Text)
	}
	value := "always"
	if f.Once {
		value = "once." + id
	}
	if rest := strings.TrimSpace(string(f.Code) + " " + f.Text); rest != "" {
		value += ":" + rest
	}
	_, err := parseFailure(value)
	return value, err
}

// ParseDelay returns the value of AnnotationDelay for a delay.
func ParseDelay(value string) (string, error) {
	_, err := parseDelay(value)
	return value, err
}

// passed are the annotations of users, which the gardenlet passes on.
var passed = []string{AnnotationDelay, AnnotationFail}

// fromGarden is the suffix of the annotations that mark those that were passed on, and say from which one.
const fromGarden = "-from-garden"

// Same reports whether two objects have the same annotations of users.
func Same(a, b metav1.Object) bool {
	for _, name := range passed {
		for _, kind := range append([]string{""}, Kinds...) {
			valueA, okA := a.GetAnnotations()[AnnotationFor(name, kind)]
			valueB, okB := b.GetAnnotations()[AnnotationFor(name, kind)]
			if okA != okB || valueA != valueB {
				return false
			}
		}
	}
	return true
}

// Pass copies the annotations of users from one object to another, and removes those that it copied before. An
// annotation that was set on the target itself is kept as long as the source never has it.
func Pass(from, to metav1.Object) {
	pass(from, to, func(name string) (source, mark string) { return name, "true" })
}

// PassFromShoot is Pass from a Shoot to one of its extension resources. The annotations for a kind count more than
// those for all.
func PassFromShoot(shoot, to metav1.Object, kind string) {
	pass(shoot, to, func(name string) (source, mark string) {
		source = AnnotationFor(name, kind)
		if _, ok := shoot.GetAnnotations()[source]; !ok && slices.Contains(generalKinds, kind) {
			source = name
		}
		return source, source
	})
}

func pass(from, to metav1.Object, sourceOf func(name string) (source, mark string)) {
	annotations := map[string]string{}
	maps.Copy(annotations, to.GetAnnotations())
	for _, name := range passed {
		source, mark := sourceOf(name)
		if value, ok := from.GetAnnotations()[source]; ok {
			annotations[name], annotations[name+fromGarden] = value, mark
		} else if annotations[name+fromGarden] != "" {
			delete(annotations, name)
			delete(annotations, name+fromGarden)
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	to.SetAnnotations(annotations)
}
