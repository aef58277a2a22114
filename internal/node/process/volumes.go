package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/secret"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/manifests"
)

// The resources of the objects to which volumes and variables refer.
const (
	configMaps = "configmaps"
	secrets    = "secrets"
)

const (
	// watchRetryFirst and watchRetryMax bound the delay before a failed watch of an object is retried.
	watchRetryFirst = time.Second
	watchRetryMax   = 30 * time.Second
	// tokenMaxAge is the age at which a token is renewed at the latest, as in a kubelet.
	tokenMaxAge = 24 * time.Hour
	// maxVolume is the maximum size in bytes of the files of a volume from objects, maxRewritten that of its kubeconfigs.
	maxVolume, maxRewritten = 64 << 20, 16 << 20
	// provisionedBy is the annotation with the provisioner of a PersistentVolume.
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// token is a token of the Pod's ServiceAccount.
type token struct {
	value string
	// renewal is when the token is renewed.
	renewal time.Time
}

// volumeDir returns the folder of a volume: of a PersistentVolumeClaim, the one that outlives the Pod.
func (p *Pod) volumeDir(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dir, ok := p.persistent[name]; ok {
		return dir
	}
	return filepath.Join(p.dir, "volumes", name)
}

// mountPersistentVolume makes the folder of the volume to which a claim is bound. Its name is the volume's UID.
func (p *Pod) mountPersistentVolume(ctx context.Context, v *corev1.Volume) error {
	name := v.PersistentVolumeClaim.ClaimName
	claim := &corev1.PersistentVolumeClaim{}
	if err := p.get(ctx, "persistentvolumeclaims", name, claim); err != nil {
		return err
	}
	if claim.Spec.VolumeName == "" || claim.Status.Phase != corev1.ClaimBound {
		return fmt.Errorf("PersistentVolumeClaim %s is not bound", name)
	}
	bound, err := p.cfg.Client().Core.PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	switch {
	case bound.Annotations[provisionedBy] != manifests.VolumeProvisioner:
		return fmt.Errorf("PersistentVolume %s is not of provisioner %s: a process can use no other", bound.Name, manifests.VolumeProvisioner)
	case ptr.Deref(bound.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) != corev1.PersistentVolumeFilesystem:
		return fmt.Errorf("PersistentVolume %s has volumeMode %s: a process has file systems only", bound.Name, *bound.Spec.VolumeMode)
	}
	dir, err := p.runner.persistentDir(p.cfg.Cluster, bound.UID)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	p.mu.Lock()
	p.persistent[v.Name] = dir
	p.mu.Unlock()
	return nil
}

// persistentDir returns the folder of a PersistentVolume. Without a volume, it is the folder of all volumes of the cluster.
func (r *Runner) persistentDir(cluster string, volume types.UID) (string, error) {
	for _, name := range []string{cluster, string(volume)} {
		if strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
			return "", fmt.Errorf("%q is not the name of a folder", name)
		}
	}
	if cluster == "" {
		return "", errors.New("the cluster has no name")
	}
	return filepath.Join(r.cfg.Dir, PersistentFolder, cluster, string(volume)), nil
}

// DeleteVolume removes the data of a PersistentVolume of a cluster.
func (r *Runner) DeleteVolume(cluster string, volume types.UID) error {
	if volume == "" {
		return errors.New("the PersistentVolume has no UID")
	}
	return r.deleteVolumes(cluster, volume)
}

// DeleteVolumes removes the data of all PersistentVolumes of a cluster.
func (r *Runner) DeleteVolumes(cluster string) error { return r.deleteVolumes(cluster, "") }

func (r *Runner) deleteVolumes(cluster string, volume types.UID) error {
	if r == nil { // all Pods are simulated
		return nil
	}
	dir, err := r.persistentDir(cluster, volume)
	if err != nil {
		return fmt.Errorf("deleting the data of PersistentVolumes: %w", err)
	}
	return fsutil.RemoveAll(dir)
}

// discardVolumes removes the files of volumes that are made from objects: an update that a kill has interrupted leaves a link
// with which every further update fails. No process of the Pod may run.
func (p *Pod) discardVolumes() error {
	volumes := p.latest().Spec.Volumes
	for i := range volumes {
		if v := &volumes[i]; isFromObjects(v) {
			if err := fsutil.RemoveAll(p.volumeDir(v.Name)); err != nil {
				return fmt.Errorf("volume %s: %w", v.Name, err)
			}
		}
	}
	return nil
}

func isFromObjects(v *corev1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}

// writeVolumes creates or updates the volumes. It returns when a token has to be renewed; zero if there is none.
func (p *Pod) writeVolumes(ctx context.Context) (next time.Time, err error) {
	pod := p.latest()
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		due, err := p.writeVolume(ctx, pod, v)
		if err != nil {
			errs = append(errs, fmt.Errorf("volume %s: %w", v.Name, err))
		}
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next, errors.Join(errs...)
}

func (p *Pod) writeVolume(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (time.Time, error) {
	var none time.Time
	if v.PersistentVolumeClaim != nil {
		return none, p.mountPersistentVolume(ctx, v)
	}
	dir := p.volumeDir(v.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return none, err
	}
	sources, mode := projections(v)
	switch {
	case v.EmptyDir != nil:
		return none, nil
	case v.HostPath != nil: // an empty folder of the Pod's own
		switch kind := ptr.Deref(v.HostPath.Type, ""); kind {
		case corev1.HostPathUnset, corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
			return none, nil
		default:
			return none, fmt.Errorf("a process has no hostPath of type %s", kind)
		}
	case !isFromObjects(v):
		return none, errors.New("a process has volumes of the types emptyDir, configMap, secret, projected, downwardAPI, " +
			"persistentVolumeClaim and hostPath only")
	}
	payload := map[string]volumeutil.FileProjection{}
	var next time.Time
	size := 0
	for i := range sources {
		files, due, err := p.project(ctx, pod, v.Name, &sources[i], mode)
		if err != nil {
			return none, err
		}
		for _, file := range files {
			if size += len(file.Data); size > maxVolume {
				return none, fmt.Errorf("it has more than %d bytes", maxVolume)
			}
		}
		maps.Copy(payload, files)
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next, p.write(v.Name, dir, payload)
}

// projections returns the sources of a volume's files and the mode of the files. Other volumes have no sources.
func projections(v *corev1.Volume) ([]corev1.VolumeProjection, *int32) {
	switch {
	case v.ConfigMap != nil:
		return []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items, Optional: v.ConfigMap.Optional,
		}}}, v.ConfigMap.DefaultMode
	case v.Secret != nil:
		return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items, Optional: v.Secret.Optional,
		}}}, v.Secret.DefaultMode
	case v.DownwardAPI != nil:
		return []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: v.DownwardAPI.Items}}}, v.DownwardAPI.DefaultMode
	case v.Projected != nil:
		return v.Projected.Sources, v.Projected.DefaultMode
	}
	return nil, nil
}

// write replaces the files of a volume atomically. It replaces mount paths in kubeconfigs.
func (p *Pod) write(name, dir string, payload map[string]volumeutil.FileProjection) error {
	left := maxRewritten
	for path, file := range payload {
		if !bytes.Contains(file.Data, []byte("kind: Config")) && !bytes.Contains(file.Data, []byte(`"kind":"Config"`)) {
			continue
		}
		mounts, err := p.mountsOf(name)
		if err != nil {
			return err
		}
		text, err := mounts.rewrite(string(file.Data), &left)
		if err != nil {
			return fmt.Errorf("file %s: %w", path, err)
		}
		file.Data = []byte(text)
		payload[path] = file
	}
	writer, err := volumeutil.NewAtomicWriter(dir, "pod "+p.UID())
	if err != nil {
		return err
	}
	return writer.Write(payload, nil)
}

// project returns the files of one source of a volume, and when they have to be updated.
func (p *Pod) project(ctx context.Context, pod *corev1.Pod, volumeName string, s *corev1.VolumeProjection, mode *int32) (
	map[string]volumeutil.FileProjection, time.Time, error) {
	var none time.Time
	switch {
	case s.ConfigMap != nil:
		cm := &corev1.ConfigMap{}
		if err := p.getOptional(ctx, configMaps, s.ConfigMap.Name, s.ConfigMap.Optional, cm); err != nil {
			return nil, none, err
		}
		files, err := configmap.MakePayload(s.ConfigMap.Items, cm, mode, ptr.Deref(s.ConfigMap.Optional, false))
		return files, none, err
	case s.Secret != nil:
		sec := &corev1.Secret{}
		if err := p.getOptional(ctx, secrets, s.Secret.Name, s.Secret.Optional, sec); err != nil {
			return nil, none, err
		}
		files, err := secret.MakePayload(s.Secret.Items, sec, mode, ptr.Deref(s.Secret.Optional, false))
		return files, none, err
	case s.DownwardAPI != nil:
		files, err := downwardapi.CollectData(s.DownwardAPI.Items, pod, noHost{}, mode)
		return files, none, err
	case s.ServiceAccountToken != nil:
		t, err := p.token(ctx, pod, volumeName, s.ServiceAccountToken)
		if err != nil {
			return nil, none, err
		}
		file := volumeutil.FileProjection{Data: []byte(t.value), Mode: 0o600}
		return map[string]volumeutil.FileProjection{s.ServiceAccountToken.Path: file}, t.renewal, nil
	}
	return nil, none, errors.New("this kind of source is not supported for processes")
}

// noHost has no allocatable resources, so that a container without a limit has none in the downward API.
type noHost struct{ volume.VolumeHost }

func (noHost) GetNodeAllocatable() (corev1.ResourceList, error) { return nil, nil }

// token returns the token of a projection. It renews the token once four fifths of its lifetime, or a day, are over.
func (p *Pod) token(ctx context.Context, pod *corev1.Pod, volumeName string, s *corev1.ServiceAccountTokenProjection) (token, error) {
	key, now := volumeName+"/"+s.Path, p.runner.cfg.Clock.Now()
	p.mu.Lock()
	t, ok := p.tokens[key]
	p.mu.Unlock()
	if ok && now.Before(t.renewal) {
		return t, nil
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: s.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}
	if s.Audience != "" {
		request.Spec.Audiences = []string{s.Audience}
	}
	account := pod.Spec.ServiceAccountName
	accounts := p.cfg.Client().Core.ServiceAccounts(pod.Namespace)
	request, err := accounts.CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		if ok && now.Before(t.renewal.Add(tokenMaxAge)) { // the current token may still be valid
			p.runner.cfg.Log.Error(err, "Renewing a token; trying again", "pod", pod.Name, "namespace", pod.Namespace)
			t.renewal = now.Add(watchRetryMax)
			return t, nil
		}
		return token{}, fmt.Errorf("asking for a token of ServiceAccount %s: %w", account, err)
	}
	life := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 3600)) * time.Second
	t = token{request.Status.Token, now.Add(min(life*4/5, tokenMaxAge))}
	p.mu.Lock()
	p.tokens[key] = t
	p.mu.Unlock()
	return t, nil
}

// get reads an object of the Pod's namespace, with the identity of its node. The API server does not validate the names
// of ConfigMaps and Secrets in volumes, client-go does: a name with slashes would be the path of an object in another
// namespace.
func (p *Pod) get(ctx context.Context, resource, name string, into runtime.Object) error {
	return p.request(resource).Name(name).Do(ctx).Into(into)
}

// getOptional reads an object, which may be missing if it is optional.
func (p *Pod) getOptional(ctx context.Context, resource, name string, optional *bool, into runtime.Object) error {
	err := p.get(ctx, resource, name, into)
	if apierrors.IsNotFound(err) && ptr.Deref(optional, false) {
		return nil
	}
	return err
}

// request begins a request that reads objects of the Pod's namespace.
func (p *Pod) request(resource string) *rest.Request {
	return p.cfg.Client().Core.RESTClient().Get().Namespace(p.latest().Namespace).Resource(resource)
}

// keepVolumes updates the volumes until the context ends: at the time next, and when an object has changed.
func (p *Pod) keepVolumes(ctx context.Context, next time.Time) {
	var watching sync.WaitGroup
	defer watching.Wait()
	for _, object := range p.sources() {
		watching.Go(func() { p.watch(ctx, object) })
	}
	clk := p.runner.cfg.Clock
	var err error
	for ctx.Err() == nil {
		wait := tokenMaxAge
		switch {
		case err != nil:
			p.runner.cfg.Log.Error(err, "Bringing the volumes of a Pod up to date; trying again", "pod", p.latest().Name,
				"namespace", p.latest().Namespace)
			wait = watchRetryMax
		case !next.IsZero():
			wait = max(0, next.Sub(clk.Now()))
		}
		timer := clk.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-p.refresh:
		}
		timer.Stop()
		if ctx.Err() == nil {
			next, err = p.writeVolumes(ctx)
		}
	}
}

// source is an object to which volumes refer.
type source struct{ resource, name string }

// sources returns the objects to which the Pod's volumes refer, without duplicates.
func (p *Pod) sources() (all []source) {
	volumes := p.latest().Spec.Volumes
	for i := range volumes {
		projected, _ := projections(&volumes[i])
		for _, s := range projected {
			var object source
			switch {
			case s.ConfigMap != nil:
				object = source{configMaps, s.ConfigMap.Name}
			case s.Secret != nil:
				object = source{secrets, s.Secret.Name}
			default:
				continue
			}
			if !slices.Contains(all, object) {
				all = append(all, object)
			}
		}
	}
	return all
}

// watch triggers an update of the volumes for each change of an object, until the context ends.
func (p *Pod) watch(ctx context.Context, s source) {
	wait := watchRetryFirst
	for {
		begin := p.runner.cfg.Clock.Now()
		err := p.watchOnce(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if p.runner.cfg.Clock.Since(begin) > watchRetryMax {
			wait = watchRetryFirst
		}
		if !errors.Is(err, io.EOF) {
			p.runner.cfg.Log.V(1).Info("Watching an object of a Pod", "resource", s.resource, "name", s.name, "error", err.Error())
		}
		if host.Sleep(ctx, p.runner.cfg.Clock, wait) != nil {
			return
		}
		wait = min(2*wait, watchRetryMax)
	}
}

func (p *Pod) watchOnce(ctx context.Context, s source) error {
	options := metav1.ListOptions{Watch: true, FieldSelector: "metadata.name=" + s.name}
	w, err := p.request(s.resource).VersionedParams(&options, scheme.ParameterCodec).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		event, open := <-w.ResultChan()
		if _, err := apiclient.ObjectOf[runtime.Object](event, open); err != nil {
			return err
		}
		p.refreshVolumes()
	}
}
