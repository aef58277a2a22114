package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// namespacePrefix is the prefix of the namespaces that are created for Projects.
const namespacePrefix = "garden-"

// namespaceName returns the namespace that a Project asks for, or the name of the one that is created for it. The
// latter depends on the Project only, so that a crash before it is written to the Project leaves nothing behind.
func namespaceName(project *corev1beta1.Project) string {
	if project.Spec.Namespace != nil && *project.Spec.Namespace != "" {
		return *project.Spec.Namespace
	}
	sum := sha256.Sum256([]byte(project.UID))
	return namespacePrefix + project.Name + "-" + hex.EncodeToString(sum[:])[:5]
}

func projectLabels(project *corev1beta1.Project) map[string]string {
	return map[string]string{constants.GardenRole: constants.GardenRoleProject, constants.ProjectName: project.Name}
}

func ownerReference(project *corev1beta1.Project) metav1.OwnerReference {
	return *metav1.NewControllerRef(project, corev1beta1.SchemeGroupVersion.WithKind("Project"))
}

// reconcileNamespace creates the Project's namespace or adopts it, and writes its name to the Project.
func (r *Reconciler) reconcileNamespace(ctx context.Context, project *corev1beta1.Project) error {
	name, namespace := namespaceName(project), &corev1.Namespace{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		err = r.createNamespace(ctx, project, name)
	case err == nil:
		err = r.adoptNamespace(ctx, project, namespace)
	}
	if err != nil {
		return err
	}
	if project.Spec.Namespace != nil {
		return nil
	}
	before := project.DeepCopy()
	project.Spec.Namespace = &name
	return r.Client.Patch(ctx, project, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *Reconciler) createNamespace(ctx context.Context, project *corev1beta1.Project, name string) error {
	logf.FromContext(ctx).Info("Creating the namespace of a project", "namespace", name)
	return r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: projectLabels(project),
		Annotations: map[string]string{
			constants.NamespaceProject:                    string(project.UID),
			constants.NamespaceCreatedByProjectController: "true",
		},
		OwnerReferences: []metav1.OwnerReference{ownerReference(project)},
	}})
}

func (r *Reconciler) adoptNamespace(ctx context.Context, project *corev1beta1.Project, namespace *corev1.Namespace) error {
	if !hasProjectLabels(namespace, project) {
		return fmt.Errorf("the namespace %q cannot be adopted: it needs the labels %s=%s and %s=%s",
			namespace.Name, constants.GardenRole, constants.GardenRoleProject, constants.ProjectName, project.Name)
	}
	if owner, ok := namespace.Annotations[constants.NamespaceProject]; ok && owner != string(project.UID) {
		return fmt.Errorf("the namespace %q is already in use by another project: set .spec.namespace to another one", namespace.Name)
	}
	if namespace.DeletionTimestamp != nil {
		return errors.New("the namespace is being deleted: it is made again once it is gone")
	}
	before := namespace.DeepCopy()
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, constants.NamespaceProject, string(project.UID))
	if namespace.Annotations[constants.NamespaceCreatedByProjectController] == "" {
		// The namespace existed before the Project, and is kept after it.
		namespace.Annotations[constants.NamespaceKeepAfterProjectDeletion] = "true"
	}
	if !slices.ContainsFunc(namespace.OwnerReferences, isReferenceTo(project)) {
		namespace.OwnerReferences = append(namespace.OwnerReferences, ownerReference(project))
	}
	if equality.Semantic.DeepEqual(before, namespace) {
		return nil
	}
	logf.FromContext(ctx).Info("Adopting a namespace for a project", "namespace", namespace.Name)
	return r.Client.Patch(ctx, namespace, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func hasProjectLabels(namespace *corev1.Namespace, project *corev1beta1.Project) bool {
	return labels.SelectorFromSet(projectLabels(project)).Matches(labels.Set(namespace.Labels))
}

func isReferenceTo(project *corev1beta1.Project) func(metav1.OwnerReference) bool {
	return func(ref metav1.OwnerReference) bool { return ref.UID == project.UID }
}

// releaseNamespace deletes the namespace of a Project, or releases it if it is to be kept. It returns false as long as
// the namespace is being deleted: the Project has to wait.
func (r *Reconciler) releaseNamespace(ctx context.Context, project *corev1beta1.Project, name string) (released bool, err error) {
	namespace := &corev1.Namespace{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, namespace); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	log := logf.FromContext(ctx).WithValues("namespace", name)
	owner, owned := namespace.Annotations[constants.NamespaceProject]
	keep, _ := strconv.ParseBool(namespace.Annotations[constants.NamespaceKeepAfterProjectDeletion])
	switch {
	case !hasProjectLabels(namespace, project) || owned && owner != string(project.UID):
		log.Info("The namespace of a project that is being deleted is not the project's: it stays as it is")
		return true, nil
	case namespace.DeletionTimestamp != nil:
		return false, nil
	case keep:
		log.Info("Giving back the namespace of a project")
		return true, r.giveBack(ctx, project, namespace)
	}
	log.Info("Deleting the namespace of a project")
	// The preconditions protect a namespace of the same name that has been created since.
	unchanged := client.Preconditions{UID: &namespace.UID, ResourceVersion: &namespace.ResourceVersion}
	if err := r.Client.Delete(ctx, namespace, unchanged); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	r.Recorder.Eventf(project, nil, corev1.EventTypeNormal, corev1beta1.ProjectEventNamespaceMarkedForDeletion, corev1beta1.EventActionDelete,
		"The namespace %q of the project is being deleted", name)
	return false, nil
}

// giveBack removes all labels, annotations and owner references with which a namespace belongs to a Project.
func (r *Reconciler) giveBack(ctx context.Context, project *corev1beta1.Project, namespace *corev1.Namespace) error {
	before := namespace.DeepCopy()
	for _, annotation := range []string{constants.NamespaceProject, constants.NamespaceKeepAfterProjectDeletion,
		constants.NamespaceCreatedByProjectController} {
		delete(namespace.Annotations, annotation)
	}
	for label := range projectLabels(project) {
		delete(namespace.Labels, label)
	}
	namespace.OwnerReferences = slices.DeleteFunc(namespace.OwnerReferences, isReferenceTo(project))
	return r.Client.Patch(ctx, namespace, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
