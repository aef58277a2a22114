package v1alpha1

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "stacks.crossplane.io", Version: "v1alpha1"}

// These are the kinds of the API.
const (
	ClusterStackInstallKind = "ClusterStackInstall"
	StackInstallKind        = "StackInstall"
	StackKind               = "Stack"
)

// AddToScheme adds the types of the API to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ClusterStackInstall{}, &ClusterStackInstallList{}, &StackInstall{}, &StackInstallList{},
		&Stack{}, &StackList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Install is a ClusterStackInstall or a StackInstall.
type Install interface {
	client.Object
	Kind() string
	// Scope returns the permission scope of the stacks that this kind installs.
	Scope() stackpackage.Scope
	Request() *InstallSpec
	State() *InstallStatus
}

// ListInstalls returns the installs of both kinds.
func ListInstalls(ctx context.Context, reader client.Reader, options ...client.ListOption) (all []Install, err error) {
	clusterWide, namespaced := &ClusterStackInstallList{}, &StackInstallList{}
	err = errors.Join(reader.List(ctx, clusterWide, options...), reader.List(ctx, namespaced, options...))
	for i := range clusterWide.Items {
		all = append(all, &clusterWide.Items[i])
	}
	for i := range namespaced.Items {
		all = append(all, &namespaced.Items[i])
	}
	return all, err
}

// InstallSpec is the reference to a package.
type InstallSpec struct {
	// Source is the registry, and Package is the image with a tag or digest.
	Source  string `json:"source,omitempty"`
	Package string `json:"package,omitempty"`
	// CRD is a CRD that the wanted stack owns. The API has this field, but packages are not found by it.
	CRD string `json:"crd,omitempty"`
}

// Reference returns the complete reference of the package.
func (s *InstallSpec) Reference() string {
	if s.Source == "" {
		return s.Package
	}
	return s.Source + "/" + s.Package
}

// InstallStatus is the status of an installation.
type InstallStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions refer to.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	ConditionedStatus `json:"conditionedStatus,omitempty"`
	// InstallJob is always empty, because reading a package does not need a Job.
	InstallJob  *corev1.ObjectReference `json:"installJob,omitempty"`
	StackRecord *corev1.ObjectReference `json:"stackRecord,omitempty"`
	// Digest is the digest of the installed package, and Package its reference. Until the reference in the spec
	// changes, the package with this digest stays installed.
	Digest  string `json:"digest,omitempty"`
	Package string `json:"package,omitempty"`
}

// ConditionedStatus is the list of conditions of an object.
type ConditionedStatus struct {
	Conditions []Condition `json:"conditions,omitempty"`
}

// These are the conditions of installs and Stacks.
const (
	// Ready is true if the controller runs.
	Ready = "Ready"
	// Synced is true if the last reconciliation succeeded.
	Synced = "Synced"
)

// These are the reasons of conditions.
const (
	ReasonCreating         = "Creating"
	ReasonDeleting         = "Deleting"
	ReasonDeletionBlocked  = "DeletionBlocked"
	ReasonAvailable        = "Available"
	ReasonUnavailable      = "Unavailable"
	ReasonReconcileSuccess = "ReconcileSuccess"
	ReasonReconcileError   = "ReconcileError"
	ReasonConflict         = "Conflict"
)

// Condition is a condition of an install or a Stack.
type Condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message,omitempty"`
}

// Condition returns the condition of this type, and an empty one if there is none.
func (s *ConditionedStatus) Condition(conditionType string) Condition {
	if i := s.index(conditionType); i >= 0 {
		return s.Conditions[i]
	}
	return Condition{}
}

// SetConditions sets conditions. A condition whose status is unchanged keeps its transition time.
func (s *ConditionedStatus) SetConditions(now metav1.Time, conditions ...Condition) {
	for _, condition := range conditions {
		condition.LastTransitionTime = now
		if i := s.index(condition.Type); i < 0 {
			s.Conditions = append(s.Conditions, condition)
		} else {
			if s.Conditions[i].Status == condition.Status {
				condition.LastTransitionTime = s.Conditions[i].LastTransitionTime
			}
			s.Conditions[i] = condition
		}
	}
}

func (s *ConditionedStatus) index(conditionType string) int {
	return slices.IndexFunc(s.Conditions, func(condition Condition) bool { return condition.Type == conditionType })
}

// ClusterStackInstall requests the installation of a cluster stack.
type ClusterStackInstall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              InstallSpec   `json:"spec,omitempty"`
	Status            InstallStatus `json:"status,omitempty"`
}

// Kind implements Install.
func (*ClusterStackInstall) Kind() string { return ClusterStackInstallKind }

// Scope implements Install.
func (*ClusterStackInstall) Scope() stackpackage.Scope { return stackpackage.ClusterScope }

// Request implements Install.
func (i *ClusterStackInstall) Request() *InstallSpec { return &i.Spec }

// State implements Install.
func (i *ClusterStackInstall) State() *InstallStatus { return &i.Status }

// ClusterStackInstallList is a list of ClusterStackInstalls.
type ClusterStackInstallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStackInstall `json:"items"`
}

// StackInstall requests the installation of a namespace stack.
type StackInstall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              InstallSpec   `json:"spec,omitempty"`
	Status            InstallStatus `json:"status,omitempty"`
}

// Kind implements Install.
func (*StackInstall) Kind() string { return StackInstallKind }

// Scope implements Install.
func (*StackInstall) Scope() stackpackage.Scope { return stackpackage.NamespaceScope }

// Request implements Install.
func (i *StackInstall) Request() *InstallSpec { return &i.Spec }

// State implements Install.
func (i *StackInstall) State() *InstallStatus { return &i.Status }

// StackInstallList is a list of StackInstalls.
type StackInstallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StackInstall `json:"items"`
}

// Stack is an installed stack, written by the Stack Manager. Of the Stacks, it reads only which stack owns or depends
// on a CRD, and their title, scope and controller.
type Stack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              StackSpec   `json:"spec,omitempty"`
	Status            StackStatus `json:"status,omitempty"`
}

// StackSpec is the metadata of the package, and the CRDs, controller and permissions of the stack.
type StackSpec struct {
	stackpackage.App          `json:",inline"`
	CustomResourceDefinitions []CRDReference `json:"customresourcedefinitions,omitempty"`
	Controller                Controller     `json:"controller,omitempty"`
	Permissions               Permissions    `json:"permissions,omitempty"`
}

// CRDReference is the reference to a CRD that a stack owns.
type CRDReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Controller is the controller of a stack.
type Controller struct {
	Deployment *ControllerDeployment `json:"deployment,omitempty"`
	Job        *ControllerJob        `json:"job,omitempty"`
}

// ControllerDeployment is a controller that is a Deployment.
type ControllerDeployment struct {
	Name string                `json:"name"`
	Spec appsv1.DeploymentSpec `json:"spec"`
}

// ControllerJob is a controller that is a Job.
type ControllerJob struct {
	Name string          `json:"name"`
	Spec batchv1.JobSpec `json:"spec"`
}

// Permissions are the permissions of the stack's controller.
type Permissions struct {
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
}

// StackStatus is the status of a stack.
type StackStatus struct {
	ConditionedStatus `json:"conditionedStatus,omitempty"`
	ControllerRef     *corev1.ObjectReference `json:"controllerRef,omitempty"`
}

// StackList is a list of Stacks.
type StackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Stack `json:"items"`
}
