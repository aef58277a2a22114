package stackpackage

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // registers Deployments with their defaults
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // registers Jobs with their defaults
	deploymentregistry "k8s.io/kubernetes/pkg/registry/apps/deployment"
	jobregistry "k8s.io/kubernetes/pkg/registry/batch/job"
)

// foundBefore matches the fields that checkController checks, in other words.
var foundBefore = regexp.MustCompile(`^(metadata\.name|spec\.selector.*|spec\.template\.metadata\.labels|.*\.restartPolicy|` +
	`.*ontainers(\[[0-9]+\]\.(name|image))?)$`)

// validateController runs the validation of the API server, so that a controller that the API server would refuse is
// refused before the one that runs is ended. After errors of checkController, it says nothing about the same fields.
func (p *Package) validateController(checked bool) error {
	var causes []metav1.StatusCause
	var err error
	if p.Job != nil {
		causes, err = validate(jobregistry.Strategy, p.Job.DeepCopy(), &batch.Job{})
	} else {
		causes, err = validate(deploymentregistry.Strategy, p.Deployment.DeepCopy(), &apps.Deployment{})
	}
	errs := []error{err}
	for _, cause := range causes {
		if !checked || !foundBefore.MatchString(cause.Field) {
			errs = append(errs, fmt.Errorf("%s: %s", cause.Field, shorten(cause.Message)))
		}
	}
	return errors.Join(errs...)
}

// validate validates an object as the API server does when it is created. The internal object is an empty one.
func validate(strategy rest.RESTCreateStrategy, object, internal runtime.Object) ([]metav1.StatusCause, error) {
	legacyscheme.Scheme.Default(object)
	if err := legacyscheme.Scheme.Convert(object, internal, nil); err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(internal)
	if err != nil {
		return nil, err
	}
	accessor.SetNamespace(metav1.NamespaceDefault)
	rest.FillObjectMetaSystemFields(accessor)
	err = rest.BeforeCreate(strategy, genericapirequest.WithNamespace(context.Background(), metav1.NamespaceDefault),
		internal)
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		return nil, err
	}
	return status.ErrStatus.Details.Causes, nil
}
