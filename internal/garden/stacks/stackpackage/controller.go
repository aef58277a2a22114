package stackpackage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// fields are the allowed fields of an object, or of each item of a list; any other field is refused. The allowed values
// of a field are given as fields for an object, as a check, or as nil for any value.
type fields map[string]any

// check returns an error if a value is not allowed.
type check func(value any) error

// These are the allowed fields of a controller. They do not include fields through which a Pod could access its node,
// or take the identity of another Pod.
var (
	objectMeta = fields{
		"name": nil, "creationTimestamp": check(isNull), "labels": check(checkKeys), "annotations": check(checkKeys),
		"namespace": refused("the controller runs in the namespace of its Stack"),
	}
	templateMeta = fields{"creationTimestamp": check(isNull), "labels": check(checkKeys), "annotations": check(checkKeys),
		"name": nil, "namespace": objectMeta["namespace"]}
	keySelector   = fields{"name": nil, "key": nil, "optional": nil}
	fieldSelector = fields{"apiVersion": nil, "fieldPath": nil}
	keyItems      = fields{"key": nil, "path": nil, "mode": nil}
	probe         = fields{
		"exec": nil, "httpGet": fields{"path": nil, "port": nil, "scheme": nil, "httpHeaders": nil},
		"tcpSocket": fields{"port": nil}, "grpc": nil,
		"initialDelaySeconds": nil, "timeoutSeconds": nil, "periodSeconds": nil, "successThreshold": nil,
		"failureThreshold": nil, "terminationGracePeriodSeconds": nil}
	seccompProfile = fields{"type": oneOf("RuntimeDefault")}
	container      = fields{
		"name": nil, "image": nil, "imagePullPolicy": nil, "command": nil, "args": nil, "workingDir": nil,
		"resources": fields{"limits": nil, "requests": nil},
		"ports":     fields{"name": nil, "containerPort": nil, "protocol": nil},
		"env": fields{"name": nil, "value": nil, "valueFrom": fields{
			"configMapKeyRef": keySelector, "secretKeyRef": keySelector, "fieldRef": fieldSelector,
			"resourceFieldRef": fields{"containerName": nil, "resource": nil, "divisor": nil}}},
		"envFrom":       refused("which variables it sets is known only later: name each of them in env"),
		"volumeMounts":  fields{"name": nil, "mountPath": nil, "readOnly": nil, "subPath": nil},
		"livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
		"terminationMessagePath": nil, "terminationMessagePolicy": nil,
		"securityContext": fields{
			"privileged": oneOf(false), "allowPrivilegeEscalation": oneOf(false), "readOnlyRootFilesystem": nil,
			"runAsNonRoot": nil,
			"runAsUser":    check(isNonRootID), "runAsGroup": check(isNonRootID), "capabilities": fields{"drop": nil},
			"seccompProfile": seccompProfile},
	}
	configMapVolume   = fields{"name": nil, "items": keyItems, "optional": nil, "defaultMode": nil}
	downwardAPIVolume = fields{"defaultMode": nil, "items": fields{
		"path": nil, "fieldRef": fieldSelector, "mode": nil, "resourceFieldRef": nil}}
	volume = fields{
		"name": nil, "emptyDir": fields{"medium": nil, "sizeLimit": nil}, "configMap": configMapVolume, "downwardAPI": downwardAPIVolume,
		"secret": fields{"secretName": nil, "items": keyItems, "optional": nil, "defaultMode": nil},
		"projected": fields{"defaultMode": nil, "sources": fields{
			"configMap": configMapVolume, "secret": configMapVolume, "downwardAPI": downwardAPIVolume,
			"serviceAccountToken": fields{"path": nil, "expirationSeconds": nil, "audience": refused("tokens are for the garden only")}}},
	}
	podSpec = fields{
		"containers": container, "initContainers": container, "volumes": volume, "restartPolicy": nil,
		"terminationGracePeriodSeconds": nil,
		"activeDeadlineSeconds":         nil, "dnsPolicy": nil, "enableServiceLinks": nil, "schedulerName": oneOf("default-scheduler"),
		"imagePullSecrets": fields{"name": nil}, "priorityClassName": check(isNonSystemPriority), "nodeSelector": nil,
		"securityContext": fields{"runAsNonRoot": nil, "runAsUser": check(isNonRootID), "runAsGroup": check(isNonRootID),
			"fsGroup": check(isNonRootID), "fsGroupChangePolicy": nil, "supplementalGroups": check(isNonRootID), "seccompProfile": seccompProfile},
		"serviceAccountName":           refused("the controller has the ServiceAccount of its Stack"),
		"serviceAccount":               refused("the controller has the ServiceAccount of its Stack"),
		"automountServiceAccountToken": oneOf(true),
	}
	template   = fields{"metadata": templateMeta, "spec": podSpec}
	deployment = fields{
		"apiVersion": nil, "kind": nil, "metadata": objectMeta, "status": check(isNull), "spec": fields{
			"replicas": nil, "selector": nil, "strategy": nil, "minReadySeconds": nil, "revisionHistoryLimit": nil,
			"progressDeadlineSeconds": nil, "template": template},
	}
	job = fields{
		"apiVersion": nil, "kind": nil, "metadata": objectMeta, "status": check(isNull), "spec": fields{
			"parallelism": nil, "completions": nil, "backoffLimit": nil, "activeDeadlineSeconds": nil,
			"ttlSecondsAfterFinished": nil, "template": template},
	}
)

// readController reads install.yaml, which is optional.
func (p *Package) readController(files Files) error {
	data, ok := files[installFile]
	if !ok {
		p.Warnings = append(p.Warnings, fmt.Sprintf("there is no %s: the stack has no controller", installFile))
		return nil
	}
	var object map[string]any
	if err := decode(installFile, data, &object); err != nil {
		return err
	}
	var allowed fields
	var into any
	switch apiVersion, kind := object["apiVersion"], object["kind"]; {
	case apiVersion == "apps/v1" && kind == "Deployment":
		p.Deployment = &appsv1.Deployment{}
		allowed, into = deployment, p.Deployment
	case apiVersion == "batch/v1" && kind == "Job":
		p.Job = &batchv1.Job{}
		allowed, into = job, p.Job
	default:
		return fmt.Errorf("%s must be a Deployment of apps/v1 or a Job of batch/v1, and has %s of %s", installFile,
			shorten(fmt.Sprint(kind)), shorten(fmt.Sprint(apiVersion)))
	}
	notAllowed := allowed.check("", object)
	if err := decode(installFile, data, into); err != nil {
		if notAllowed == nil { // otherwise it may be about a field that is not allowed
			return err
		}
		return prefixed(installFile+": ", notAllowed)
	}
	own := p.checkController()
	return prefixed(installFile+": ", errors.Join(notAllowed, own, p.validateController(own != nil)))
}

// checkController checks rules that concern several fields of the controller.
func (p *Package) checkController() error {
	if p.Job != nil {
		err := checkPod(p.Job.Name, &p.Job.Spec.Template)
		if policy := p.Job.Spec.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
			err = errors.Join(errors.New("spec.template.spec.restartPolicy must be Never or OnFailure"), err)
		}
		return err
	}
	err := checkPod(p.Deployment.Name, &p.Deployment.Spec.Template)
	selector, selectorErr := metav1.LabelSelectorAsSelector(p.Deployment.Spec.Selector)
	switch {
	case selectorErr != nil:
		return errors.Join(fmt.Errorf("spec.selector: %w", selectorErr), err)
	case selector.Empty() || !selector.Matches(labels.Set(p.Deployment.Spec.Template.Labels)):
		return errors.Join(errors.New("spec.selector must select the labels of spec.template"), err)
	}
	return err
}

func checkPod(name string, template *corev1.PodTemplateSpec) error {
	var errs []error
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		errs = append(errs, fmt.Errorf("metadata.name %q: %s", shorten(name), reasons[0]))
	}
	if len(template.Spec.Containers) == 0 {
		errs = append(errs, errors.New("spec.template.spec.containers: there is none"))
	}
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		if reasons := validation.IsDNS1123Label(c.Name); len(reasons) > 0 {
			errs = append(errs, fmt.Errorf("the name %q of a container: %s", shorten(c.Name), reasons[0]))
		}
		if c.Image == "" {
			errs = append(errs, fmt.Errorf("the container %s has no image: that of the package is not filled in, name one",
				shorten(c.Name)))
		}
		errs = append(errs, prefixed("the container "+shorten(c.Name)+": ", checkInput(&c)))
	}
	return errors.Join(errs...)
}

// check checks that a value has only allowed fields and values.
func (f fields) check(at string, value any) error {
	var errs []error
	switch v := value.(type) {
	case nil:
	case []any:
		for i, item := range v {
			errs = append(errs, f.check(fmt.Sprintf("%s[%d]", at, i), item))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, f.checkField(strings.TrimPrefix(at+"."+shorten(key), "."), key, v[key]))
		}
	default:
		return fmt.Errorf("%s must be an object", at)
	}
	return errors.Join(errs...)
}

func (f fields) checkField(at, key string, value any) error {
	allowed, ok := f[key]
	if !ok {
		return fmt.Errorf("%s is not allowed for the controller of a stack", at)
	}
	switch a := allowed.(type) {
	case fields:
		return a.check(at, value)
	case check:
		if err := a(value); err != nil {
			return fmt.Errorf("%s is not allowed: %w", at, err)
		}
	}
	return nil
}

func refused(reason string) check { return func(any) error { return errors.New(reason) } }

func oneOf(allowed any) check {
	return func(value any) error {
		if value != nil && value != allowed {
			return fmt.Errorf("it must be %v", allowed)
		}
		return nil
	}
}

// isNull accepts null and the empty object, which kubectl writes for unset fields.
func isNull(value any) error {
	if object, ok := value.(map[string]any); value != nil && (!ok || len(object) > 0) {
		return errors.New("it must not be set")
	}
	return nil
}

// isNonRootID accepts the IDs of users and groups, and lists of them, except those of root.
func isNonRootID(value any) error {
	if list, ok := value.([]any); ok {
		for _, item := range list {
			if err := isNonRootID(item); err != nil {
				return err
			}
		}
		return nil
	}
	if number, ok := value.(float64); value != nil && (!ok || number < 1) {
		return errors.New("it must be the number of a user or group that is not root's")
	}
	return nil
}

// isNonSystemPriority accepts the names of priority classes, except those of Kubernetes and Gardener.
func isNonSystemPriority(value any) error {
	if name, ok := value.(string); value != nil && (!ok || strings.HasPrefix(name, "system-") || strings.HasPrefix(name, "gardener-")) {
		return errors.New("the priorities of Kubernetes and Gardener are for their own components")
	}
	return nil
}

// commonLabels is the prefix of Kubernetes' common labels, which every application may set.
const commonLabels = "app.kubernetes.io/"

// checkKeys refuses labels and annotations with a prefix of Kubernetes, Gardener or gardenlite.
func checkKeys(value any) error {
	object, ok := value.(map[string]any)
	if value != nil && !ok {
		return errors.New("it must be an object")
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		domain, _, _ := strings.Cut(key, "/")
		if !strings.HasPrefix(key, commonLabels) && domainOf(domain, reservedGroups) != "" {
			return fmt.Errorf("the key %q has a meaning of its own", shorten(key))
		}
	}
	return nil
}
