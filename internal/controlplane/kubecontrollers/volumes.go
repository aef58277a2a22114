package kubecontrollers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/gardenlite/gardenlite/manifests"
)

const (
	// volumeDriver is the CSI driver in the provisioned volumes.
	volumeDriver = "volumes.gardenlite.dev"
	// volumeSyncPeriod is the default of kube-controller-manager.
	volumeSyncPeriod = 15 * time.Second
)

// newVolumeBinder returns the controller that binds claims to volumes. It provisions the volumes of the default
// StorageClass itself; volumes of other classes are left to their provisioners.
func newVolumeBinder(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	return runnerOf(persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient: client, SyncPeriod: volumeSyncPeriod, EnableDynamicProvisioning: true,
		VolumePlugins:  []volume.VolumePlugin{&volumePlugin{delete: c.cfg.DeleteVolume}},
		VolumeInformer: hold(h, all.Core().V1().PersistentVolumes()), ClaimInformer: hold(h, all.Core().V1().PersistentVolumeClaims()),
		ClassInformer: hold(h, all.Storage().V1().StorageClasses()), PodInformer: hold(h, all.Core().V1().Pods()),
		NodeInformer: hold(h, all.Core().V1().Nodes()),
	}))
}

// volumePlugin provisions volumes that any Node can mount. For the controller it is an in-tree plugin, so that no external
// provisioner is needed.
type volumePlugin struct {
	// delete removes the data of a volume; nil if volumes have no data.
	delete func(volume types.UID) error
}

var (
	_ volume.ProvisionableVolumePlugin = &volumePlugin{}
	_ volume.DeletableVolumePlugin     = &volumePlugin{}
)

var errNoMount = errors.New("volumes are mounted by the node, not by the controller")

func (*volumePlugin) Init(volume.VolumeHost) error      { return nil }
func (*volumePlugin) GetPluginName() string             { return manifests.VolumeProvisioner }
func (*volumePlugin) CanSupport(spec *volume.Spec) bool { return isProvisioned(spec) }
func (*volumePlugin) RequiresRemount(*volume.Spec) bool { return false }
func (*volumePlugin) SupportsMountOption() bool         { return false }

func (*volumePlugin) SupportsSELinuxContextMount(*volume.Spec) (bool, error) { return false, nil }

func (*volumePlugin) GetVolumeName(spec *volume.Spec) (string, error) { return spec.Name(), nil }

func (*volumePlugin) NewMounter(*volume.Spec, *corev1.Pod) (volume.Mounter, error) {
	return nil, errNoMount
}

func (*volumePlugin) NewUnmounter(string, types.UID) (volume.Unmounter, error) {
	return nil, errNoMount
}

func (*volumePlugin) ConstructVolumeSpec(string, string) (volume.ReconstructedVolume, error) {
	return volume.ReconstructedVolume{}, errNoMount
}

func (*volumePlugin) NewProvisioner(_ klog.Logger, options volume.VolumeOptions) (volume.Provisioner, error) {
	return provisioner{options}, nil
}

func (p *volumePlugin) NewDeleter(_ klog.Logger, spec *volume.Spec) (volume.Deleter, error) {
	if !isProvisioned(spec) {
		return nil, fmt.Errorf("volume %s is not of the CSI driver %s", spec.Name(), volumeDriver)
	}
	return &deleter{volume: spec.PersistentVolume.UID, delete: p.delete}, nil
}

func isProvisioned(spec *volume.Spec) bool {
	v := spec.PersistentVolume
	return v != nil && v.Spec.CSI != nil && v.Spec.CSI.Driver == volumeDriver
}

type provisioner struct{ volume.VolumeOptions }

// Provision implements volume.Provisioner. The volume has the size that the claim requests, but the size is not
// enforced.
func (p provisioner) Provision(*corev1.Node, []corev1.TopologySelectorTerm) (*corev1.PersistentVolume, error) {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: p.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: p.PersistentVolumeReclaimPolicy,
			AccessModes:                   p.PVC.Spec.AccessModes,
			VolumeMode:                    p.PVC.Spec.VolumeMode,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: p.PVC.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: volumeDriver, VolumeHandle: p.PVName},
			},
		},
	}, nil
}

type deleter struct {
	volume.MetricsNil
	volume types.UID
	delete func(types.UID) error
}

func (*deleter) GetPath() string { return "" }

func (d *deleter) Delete() error {
	if d.delete == nil {
		return nil
	}
	return d.delete(d.volume)
}
