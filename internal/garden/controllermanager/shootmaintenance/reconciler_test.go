package shootmaintenance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

const day = 24 * time.Hour

func expired(version string) corev1beta1.ExpirableVersion {
	return corev1beta1.ExpirableVersion{Version: version, ExpirationDate: ptr.To(metav1.NewTime(kittest.Start.Add(-day)))}
}

func image(v corev1beta1.ExpirableVersion) corev1beta1.MachineImageVersion {
	return corev1beta1.MachineImageVersion{ExpirableVersion: v, Architectures: []string{"amd64"}, CRI: []corev1beta1.CRI{{Name: "containerd"}}}
}

func profile() *corev1beta1.CloudProfile {
	arm := image(corev1beta1.ExpirableVersion{Version: "1.9.0"})
	arm.Architectures = []string{"arm64"}
	young := image(corev1beta1.ExpirableVersion{Version: "1.8.0"})
	young.KubeletVersionConstraint = ptr.To(">= 1.40")
	return &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: corev1beta1.CloudProfileSpec{
		Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
			expired("1.32.9"), expired("1.33.1"), {Version: "1.33.2"}, {Version: "1.34.1"}, {Version: "1.34.0"}, {Version: "1.35.0"},
		}},
		MachineTypes: []corev1beta1.MachineType{{Name: "small", Architecture: ptr.To("amd64")}},
		MachineImages: []corev1beta1.MachineImage{
			{Name: "linux", UpdateStrategy: ptr.To(corev1beta1.UpdateStrategyMinor), Versions: []corev1beta1.MachineImageVersion{
				image(expired("0.9.0")), image(corev1beta1.ExpirableVersion{Version: "1.0.0"}),
				image(corev1beta1.ExpirableVersion{Version: "1.1.0"}), arm, young,
			}}},
	}}
}

// shoot returns a Shoot that is up to date. Its window is from 1:00 to 2:00, UTC; the clock begins at midnight.
func shoot(change func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x", CreationTimestamp: metav1.NewTime(kittest.Start)}}
	s.Spec = corev1beta1.ShootSpec{
		CloudProfile: &corev1beta1.CloudProfileReference{Name: "local"},
		Kubernetes:   corev1beta1.Kubernetes{Version: "1.34.1"},
		Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "w", Machine: corev1beta1.Machine{
			Type: "small", Architecture: ptr.To("amd64"), Image: &corev1beta1.ShootMachineImage{Name: "linux", Version: ptr.To("1.1.0")},
		}}}},
		Maintenance: &corev1beta1.Maintenance{
			TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "010000+0000", End: "020000+0000"},
			AutoUpdate: &corev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true, MachineImageVersion: ptr.To(true)},
		},
	}
	s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded"}
	if change != nil {
		change(s)
	}
	return s
}

func reconciler(g kittest.Garden) (*Reconciler, *events.FakeRecorder) {
	recorder := events.NewFakeRecorder(100)
	return &Reconciler{Base: kit.Base{Client: g, Clock: g.Clock, Recorder: recorder}}, recorder
}

func TestWindow(t *testing.T) {
	for name, test := range map[string]struct {
		after      time.Duration
		annotation string
		maintained bool
		from, to   time.Duration
	}{
		"before":              {0, "", false, time.Hour, time.Hour + 45*time.Minute},
		"in it":               {time.Hour, "", true, 0, day},
		"in its last minutes": {time.Hour + 50*time.Minute, "", false, 0, 24 * time.Hour},
		"after it":            {12 * time.Hour, "", false, 13 * time.Hour, 13*time.Hour + 45*time.Minute},
		"asked for":           {12 * time.Hour, "maintain", true, 13 * time.Hour, 13*time.Hour + 45*time.Minute},
		"something else":      {12 * time.Hour, "reconcile", false, 13 * time.Hour, 13*time.Hour + 45*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := shoot(func(s *corev1beta1.Shoot) {
				if test.annotation != "" {
					s.Annotations = map[string]string{constants.GardenerOperation: test.annotation}
				}
			})
			g := kittest.New(t, s, profile())
			g.After(test.after)
			r, _ := reconciler(g)
			result := g.MustReconcile(reconcile.AsReconciler(g, r), s)
			if result.RequeueAfter < test.from || result.RequeueAfter > test.to {
				t.Errorf("again after %s", result.RequeueAfter)
			}
			if got := s.Annotations[constants.ShootTasks] != ""; got != test.maintained {
				t.Errorf("annotations %v", s.Annotations)
			}
			if test.maintained && s.Annotations[constants.GardenerOperation] != "reconcile" {
				t.Errorf("it is not reconciled: %v", s.Annotations)
			}
		})
	}
}

// TestNextWindow: the time that a maintenance takes does not delay the next one, which an advance of the clock would miss.
func TestNextWindow(t *testing.T) {
	clk, s := landscapeclock.New(nil, nil), shoot(nil)
	begin := time.Now().Add(day).UTC().Truncate(day).Add(70 * time.Minute)
	if err := errors.Join(clk.SetRate(0), clk.Set(begin)); err != nil {
		t.Fatal(err)
	}
	g := kittest.New(t, s, profile())
	r, _ := reconciler(g)
	r.Clock = clk
	r.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return errors.Join(clk.Set(begin.Add(time.Minute)), c.Patch(ctx, obj, patch, opts...))
		},
	})
	result := g.MustReconcile(reconcile.AsReconciler(r.Client, r), s)
	due, found := clk.NextDate()
	if at := clk.Now().Add(result.RequeueAfter); !found || at.After(due) || due.Sub(at) > time.Second || at.Before(begin.Add(day-time.Hour)) {
		t.Errorf("it is maintained at %s, and an advance stops at %s", at, due)
	}
}

// TestMaintains checks how a requested maintenance changes a Shoot.
func TestMaintains(t *testing.T) {
	off := func(s *corev1beta1.Shoot) {
		s.Spec.Maintenance.AutoUpdate = &corev1beta1.MaintenanceAutoUpdate{MachineImageVersion: ptr.To(false)}
	}
	for name, test := range map[string]struct {
		change            func(*corev1beta1.Shoot)
		kubernetes, image string
		state             corev1beta1.LastOperationState
		description       []string
		failure           string
		event             string
	}{
		"up to date": {nil, "1.34.1", "1.1.0", "", nil, "", ""},
		"patch": {func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.34.0" }, "1.34.1", "1.1.0", "Succeeded",
			[]string{`Control Plane: Kubernetes version updated from "1.34.0" to "1.34.1"`}, "", "Normal KubernetesVersionMaintenance"},
		"patch, switched off": {func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.34.0"; off(s) }, "1.34.0",
			"1.1.0", "", nil, "", ""},
		"expired, with later patch": {func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.33.1"; off(s) }, "1.33.2",
			"1.1.0", "Succeeded", []string{"has expired"}, "", "Normal KubernetesVersionMaintenance"},
		"expired, last of its minor": {func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.32.9"; off(s) }, "1.33.2",
			"1.1.0", "Succeeded", []string{`to "1.33.2"`}, "", "Normal"},
		"no longer there": {func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.31.0"; off(s) }, "1.32.9",
			"1.1.0", "Succeeded", []string{"does not have the version"}, "", "Normal"},
		"with nothing to follow": {func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.29.0"; off(s) }, "1.29.0",
			"1.1.0", "Failed", []string{"0 of 1 parts"}, "no version to follow it", "Warning"},
		"image": {func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Version = ptr.To("1.0.0") },
			"1.34.1", "1.1.0", "Succeeded", []string{`Worker pool "w": version of the machine image "linux" updated from "1.0.0" to "1.1.0"`},
			"", "Normal MachineImageVersionMaintenance"},
		"image, switched off": {func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Version = ptr.To("1.0.0"); off(s) },
			"1.34.1", "1.0.0", "", nil, "", ""},
		"image, expired": {func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Version = ptr.To("0.9.0"); off(s) },
			"1.34.1", "1.1.0", "Succeeded", nil, "", "Normal MachineImage"},
		"image that is not there": {func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Name = "bsd" },
			"1.34.1", "1.1.0", "Failed", nil, "choose another machine image", "Warning MachineImage"},
		"one fails, one does not": {func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Workers[0].Machine.Image.Name = "bsd"
			s.Spec.Kubernetes.Version = "1.34.0"
		}, "1.34.1", "1.1.0", "Failed", []string{"1 of 2 parts"}, "choose another", "Warning"},
		"feature gates that are gone": {func(s *corev1beta1.Shoot) {
			s.Spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{
				KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"NoSuchGate": true}}}
		}, "1.34.1", "1.1.0", "Succeeded", []string{"NoSuchGate"}, "", ""},
		"a failure of before is over": {func(s *corev1beta1.Shoot) {
			s.Status.LastMaintenance = &corev1beta1.LastMaintenance{State: "Failed", FailureReason: ptr.To("x")}
		}, "1.34.1", "1.1.0", "Succeeded", []string{"Maintenance succeeded"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := shoot(test.change)
			s.Annotations = map[string]string{constants.GardenerOperation: "maintain"}
			g := kittest.New(t, s, profile())
			r, recorder := reconciler(g)
			g.MustReconcile(reconcile.AsReconciler(g, r), s)
			if v := s.Spec.Kubernetes.Version; v != test.kubernetes {
				t.Errorf("Kubernetes %s", v)
			}
			if v := *s.Spec.Provider.Workers[0].Machine.Image.Version; v != test.image {
				t.Errorf("image %s", v)
			}
			last := ptr.Deref(s.Status.LastMaintenance, corev1beta1.LastMaintenance{})
			if last.State != test.state || !strings.Contains(ptr.Deref(last.FailureReason, ""), test.failure) ||
				test.failure == "" && last.FailureReason != nil {
				t.Errorf("last maintenance %s: %s; %s", last.State, last.Description, ptr.Deref(last.FailureReason, ""))
			}
			for _, part := range test.description {
				if !strings.Contains(last.Description, part) {
					t.Errorf("%q is not in %q", part, last.Description)
				}
			}
			select {
			case got := <-recorder.Events:
				if test.event == "" || !strings.HasPrefix(got, test.event) {
					t.Errorf("event %s", got)
				}
			default:
				if test.event != "" {
					t.Error("no event")
				}
			}
			if s.Annotations[constants.GardenerOperation] != "reconcile" {
				t.Errorf("annotations %v", s.Annotations)
			}
		})
	}
}

// TestForced checks that fields that a newer minor version does not have are removed with the update to it, and not
// before.
func TestForced(t *testing.T) {
	s := shoot(func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes = corev1beta1.Kubernetes{
			Version:               "1.32.9",
			KubeControllerManager: &corev1beta1.KubeControllerManagerConfig{PodEvictionTimeout: &metav1.Duration{Duration: time.Minute}},
			KubeAPIServer:         &corev1beta1.KubeAPIServerConfig{EnableAnonymousAuthentication: ptr.To(true)},
		}
		s.Spec.SecretBindingName = ptr.To("b")
		pool := s.Spec.Provider.Workers[0]
		pool.Name, pool.Kubernetes = "own", &corev1beta1.WorkerKubernetes{Version: ptr.To("1.32.9")}
		s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, pool)
		s.Annotations = map[string]string{constants.GardenerOperation: "maintain"}
	})
	p := profile()
	binding := &corev1beta1.SecretBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "b"},
		Provider:  &corev1beta1.SecretBindingProvider{Type: "local"},
		SecretRef: corev1.SecretReference{Namespace: "garden-dev", Name: "s"}}
	g := kittest.New(t, s, p, binding)
	r, _ := reconciler(g)
	g.MustReconcile(reconcile.AsReconciler(g, r), s)
	if c := s.Spec.Kubernetes; c.Version != "1.33.2" || c.KubeControllerManager.PodEvictionTimeout != nil ||
		c.KubeAPIServer.EnableAnonymousAuthentication == nil {
		t.Errorf("Kubernetes %+v", c)
	}
	if own := *s.Spec.Provider.Workers[1].Kubernetes.Version; own != "1.33.2" || s.Spec.SecretBindingName == nil {
		t.Errorf("pool %s, binding %v", own, s.Spec.SecretBindingName)
	}
	for i := range p.Spec.Kubernetes.Versions[:3] { // up to 1.33.2
		p.Spec.Kubernetes.Versions[i].ExpirationDate = ptr.To(metav1.NewTime(kittest.Start.Add(-day)))
	}
	g.Must(g.Update(t.Context(), p))
	s.Annotations[constants.GardenerOperation] = "maintain"
	g.Must(g.Update(t.Context(), s))
	g.MustReconcile(reconcile.AsReconciler(g, r), s)
	made := &securityv1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "force-migrated-b"}}
	if !g.Exists(made) || made.CredentialsRef.Name != "s" || made.CredentialsRef.Kind != "Secret" || made.Provider.Type != "local" {
		t.Errorf("binding %+v", made)
	}
	if s.Spec.Kubernetes.Version != "1.34.1" || s.Spec.SecretBindingName != nil ||
		ptr.Deref(s.Spec.CredentialsBindingName, "") != "force-migrated-b" {
		t.Errorf("Kubernetes %s, bindings %v, %v", s.Spec.Kubernetes.Version, s.Spec.SecretBindingName, s.Spec.CredentialsBindingName)
	}
}

func TestRotations(t *testing.T) {
	weekly := &corev1beta1.MaintenanceRotationConfig{RotationPeriod: &metav1.Duration{Duration: 7 * day}}
	all := &corev1beta1.MaintenanceAutoRotation{
		Credentials: &corev1beta1.MaintenanceCredentialsAutoRotation{SSHKeypair: weekly, Observability: weekly, ETCDEncryptionKey: weekly}}
	for name, test := range map[string]struct {
		change func(*corev1beta1.Shoot)
		after  time.Duration
		want   string
	}{
		"not yet": {nil, 7 * day, "reconcile"},
		"due":     {nil, 7*day + 1, "reconcile;rotate-ssh-keypair;rotate-observability-credentials;rotate-etcd-encryption-key"},
		"without SSH": {func(s *corev1beta1.Shoot) {
			s.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{}}
		}, 8 * day, "reconcile;rotate-observability-credentials;rotate-etcd-encryption-key"},
		"hibernated": {func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} },
			8 * day, "reconcile;rotate-ssh-keypair;rotate-observability-credentials"},
		"rotated by hand": {func(s *corev1beta1.Shoot) {
			s.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				SSHKeypair:        &corev1beta1.ShootSSHKeypairRotation{LastCompletionTime: ptr.To(metav1.NewTime(kittest.Start.Add(5 * day)))},
				ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationPreparing},
			}}
		}, 8 * day, "reconcile;rotate-observability-credentials"},
		"put off until now": {func(s *corev1beta1.Shoot) {
			s.Spec.Maintenance.AutoRotation = nil
			s.Annotations[constants.GardenerMaintenanceOperation] = "rotate-ca-start"
		}, 8 * day, "rotate-ca-start;reconcile"},
		"failed for good": {func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = "Failed" }, 8 * day, ""},
		"failed for good, to be tried": {func(s *corev1beta1.Shoot) {
			s.Status.LastOperation.State = "Failed"
			s.Annotations[constants.FailedShootNeedsRetryOperation] = "true"
		}, 8 * day, "retry"},
		"not created yet": {func(s *corev1beta1.Shoot) { s.Status.LastOperation = nil }, 8 * day, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := shoot(func(s *corev1beta1.Shoot) {
				s.Annotations = map[string]string{constants.GardenerOperation: "maintain"}
				s.Spec.Maintenance.AutoRotation = all.DeepCopy()
				if test.change != nil {
					test.change(s)
				}
			})
			g := kittest.New(t, s, profile())
			g.After(test.after)
			r, _ := reconciler(g)
			g.MustReconcile(reconcile.AsReconciler(g, r), s)
			if got := s.Annotations[constants.GardenerOperation]; got != test.want {
				t.Errorf("operations %q", got)
			}
			if s.Annotations[constants.GardenerMaintenanceOperation] != "" || s.Annotations[constants.FailedShootNeedsRetryOperation] != "" {
				t.Errorf("annotations %v", s.Annotations)
			}
		})
	}
}

// TestRefused checks that a Shoot whose changes the garden refuses is not changed and contains the reason.
func TestRefused(t *testing.T) {
	s := shoot(func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes.Version = "1.34.0"
		s.Annotations = map[string]string{constants.GardenerOperation: "maintain"}
	})
	g := kittest.New(t, s, profile())
	refusal := apierrors.NewForbidden(corev1beta1.Resource("shoots"), "x", errors.New("no"))
	g.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if obj.(*corev1beta1.Shoot).Spec.Kubernetes.Version != "1.34.0" {
				return refusal
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	r, recorder := reconciler(g)
	if result := g.MustReconcile(reconcile.AsReconciler(g, r), s); result.RequeueAfter == 0 {
		t.Error("it does not come back")
	}
	last := s.Status.LastMaintenance
	if s.Spec.Kubernetes.Version != "1.34.0" || last == nil || last.State != "Failed" ||
		!strings.Contains(*last.FailureReason, "no") || isRequested(s) {
		t.Errorf("Kubernetes %s, last maintenance %+v, annotations %v", s.Spec.Kubernetes.Version, last, s.Annotations)
	}
	if got := <-recorder.Events; !strings.Contains(got, corev1beta1.ShootMaintenanceFailed) {
		t.Errorf("event %s", got)
	}
}

// TestChangedMeanwhile checks that a change which a user makes between two requests of a maintenance is kept.
func TestChangedMeanwhile(t *testing.T) {
	s := shoot(func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.34.0" })
	g := kittest.New(t, s, profile())
	g.After(time.Hour)
	r, _ := reconciler(g)
	changed := false
	r.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if !changed {
				changed = true
				current := &corev1beta1.Shoot{}
				g.Must(c.Get(ctx, client.ObjectKeyFromObject(obj), current))
				current.Spec.Provider.Workers[0].Maximum = 7
				g.Must(c.Update(ctx, current))
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	if _, err := g.Reconcile(reconcile.AsReconciler(g, r), s); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	g.MustReconcile(reconcile.AsReconciler(g, r), s)
	if maximum := s.Spec.Provider.Workers[0].Maximum; maximum != 7 || s.Spec.Kubernetes.Version != "1.34.1" {
		t.Errorf("the maximum is %d, the version %s", maximum, s.Spec.Kubernetes.Version)
	}
}

func TestToBeMaintained(t *testing.T) {
	asked := shoot(func(s *corev1beta1.Shoot) { s.Annotations = map[string]string{constants.GardenerOperation: "maintain"} })
	other := shoot(func(s *corev1beta1.Shoot) { s.Spec.Maintenance.TimeWindow.End = "030000+0000" })
	respecified := shoot(func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.35.0" })
	for name, test := range map[string]struct {
		before, after *corev1beta1.Shoot
		want          bool
	}{"asked": {shoot(nil), asked, true}, "still asked": {asked, asked, false}, "other window": {shoot(nil), other, true},
		"other spec": {shoot(nil), respecified, false}} {
		if got := toBeMaintained().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
