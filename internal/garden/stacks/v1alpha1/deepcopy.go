package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func (s InstallStatus) deepCopy() InstallStatus {
	s.Conditions = slices.Clone(s.Conditions)
	s.InstallJob, s.StackRecord = s.InstallJob.DeepCopy(), s.StackRecord.DeepCopy()
	return s
}

// DeepCopyObject implements runtime.Object.
func (i *ClusterStackInstall) DeepCopyObject() runtime.Object {
	return &ClusterStackInstall{i.TypeMeta, *i.ObjectMeta.DeepCopy(), i.Spec, i.Status.deepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (i *StackInstall) DeepCopyObject() runtime.Object {
	return &StackInstall{i.TypeMeta, *i.ObjectMeta.DeepCopy(), i.Spec, i.Status.deepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (s *Stack) DeepCopyObject() runtime.Object {
	out := *s
	out.ObjectMeta = *s.ObjectMeta.DeepCopy()
	app := &out.Spec.App
	app.Icons, app.Maintainers, app.Owners = slices.Clone(app.Icons), slices.Clone(app.Maintainers), slices.Clone(app.Owners)
	app.Keywords, app.DependsOn = slices.Clone(app.Keywords), slices.Clone(app.DependsOn)
	out.Spec.CustomResourceDefinitions = slices.Clone(s.Spec.CustomResourceDefinitions)
	if d := s.Spec.Controller.Deployment; d != nil {
		out.Spec.Controller.Deployment = &ControllerDeployment{d.Name, *d.Spec.DeepCopy()}
	}
	if j := s.Spec.Controller.Job; j != nil {
		out.Spec.Controller.Job = &ControllerJob{j.Name, *j.Spec.DeepCopy()}
	}
	out.Spec.Permissions.Rules = slices.Clone(s.Spec.Permissions.Rules)
	for i := range out.Spec.Permissions.Rules {
		out.Spec.Permissions.Rules[i] = *s.Spec.Permissions.Rules[i].DeepCopy()
	}
	out.Status.Conditions = slices.Clone(s.Status.Conditions)
	out.Status.ControllerRef = s.Status.ControllerRef.DeepCopy()
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *ClusterStackInstallList) DeepCopyObject() runtime.Object {
	return &ClusterStackInstallList{l.TypeMeta, *l.ListMeta.DeepCopy(), copyItems(l.Items)}
}

// DeepCopyObject implements runtime.Object.
func (l *StackInstallList) DeepCopyObject() runtime.Object {
	return &StackInstallList{l.TypeMeta, *l.ListMeta.DeepCopy(), copyItems(l.Items)}
}

// DeepCopyObject implements runtime.Object.
func (l *StackList) DeepCopyObject() runtime.Object {
	return &StackList{l.TypeMeta, *l.ListMeta.DeepCopy(), copyItems(l.Items)}
}

func copyItems[T any, P interface {
	*T
	runtime.Object
}](items []T) []T {
	copied := make([]T, len(items))
	for i := range items {
		copied[i] = *any(P(&items[i]).DeepCopyObject()).(P)
	}
	return copied
}

var _ = []Install{&ClusterStackInstall{}, &StackInstall{}}

var _ metav1.Object = &Stack{}
