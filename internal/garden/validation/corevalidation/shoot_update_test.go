package corevalidation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// existing returns a function that makes a shoot with a resource version, like one from the API server.
func existing(make func() *shoot) func() *shoot {
	return func() *shoot {
		s := make()
		s.ResourceVersion = "1"
		return s
	}
}

func inPlaceShoot() *shoot {
	s := exampleShoot()
	s.Spec.Provider.Workers[0].UpdateStrategy = ptr.To(gardencore.AutoInPlaceUpdate)
	s.Status.InPlaceUpdates = &gardencore.InPlaceUpdatesStatus{}
	return s
}

func TestValidateShootUpdate(t *testing.T) {
	const path = "spec.provider.workers[0]"
	plain, inPlace, selfHosted := existing(exampleShoot), existing(inPlaceShoot), existing(selfHostedShoot)
	runMutations(t, plain, after(plain, ValidateShootUpdate), []mutation[shoot]{
		{"nothing", func(*shoot) {}, nil},
		{"what is fixed", func(s *shoot) { s.Spec.Region, s.Spec.Provider.Type, s.Spec.SecretBindingName = "us", "x", ptr.To("b") },
			[]string{"Invalid spec.region", "Invalid spec.provider.type", "Invalid spec.secretBindingName",
				"Forbidden spec.secretBindingName", "Forbidden spec.secretBindingName"}},
		{"binding unset", func(s *shoot) { s.Spec.CredentialsBindingName = nil },
			[]string{"Forbidden spec.credentialsBindingName", "Required spec.secretBindingName"}},
		{"changed in deletion", func(s *shoot) { s.DeletionTimestamp, s.Spec.Purpose = ptr.To(metav1.Now()), nil },
			[]string{"Invalid metadata.deletionTimestamp", "Forbidden spec"}},
		{"networks", func(s *shoot) {
			s.Spec.Networking.Pods, s.Spec.Networking.IPFamilies = ptr.To("10.0.0.0/13"), []gardencore.IPFamily{"IPv6"}
		},
			[]string{"Invalid spec.networking.pods", "Forbidden spec.networking.ipFamilies", "Invalid spec.networking.nodes",
				"Invalid spec.networking.pods", "Invalid spec.networking.services"}},
		{"scheduler", func(s *shoot) { s.Spec.SchedulerName = ptr.To("x") }, []string{"Invalid spec.schedulerName"}},
		{"default scheduler", func(s *shoot) { s.Spec.SchedulerName = ptr.To("default-scheduler") }, nil},
		{"in place from now on", func(s *shoot) { s.Spec.Provider.Workers[0].UpdateStrategy = ptr.To(gardencore.AutoInPlaceUpdate) },
			[]string{"Invalid " + path + ".updateStrategy"}},
		{"new pool in place", func(s *shoot) {
			pool := examplePool("c")
			pool.UpdateStrategy = ptr.To(gardencore.AutoInPlaceUpdate)
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, pool)
		}, []string{"Invalid spec.provider.workers[2].updateStrategy"}},
		{"self-hosted from now on", func(s *shoot) { s.Spec.Provider.Workers[0].ControlPlane = &gardencore.WorkerControlPlane{} },
			[]string{"Forbidden spec.provider.workers", "Invalid metadata.namespace", "Invalid " + path + ".minimum",
				"Invalid " + path + ".maximum"}},
		{"hibernated while encrypting", func(s *shoot) {
			s.Spec.Hibernation = &gardencore.Hibernation{Enabled: ptr.To(true)}
			s.Status.Credentials = &gardencore.ShootCredentials{Rotation: &gardencore.ShootCredentialsRotation{
				ETCDEncryptionKey: &gardencore.ETCDEncryptionKeyRotation{Phase: gardencore.RotationPreparing}}}
		}, []string{"Forbidden spec.hibernation.enabled"}},
	})
	const zones = "spec.controlPlane.zones"
	runMutations(t, plain, after(plain, ValidateShootUpdate), []mutation[shoot]{
		{"pinned from now on", pinnedTo("", "a"), []string{"Forbidden " + zones}},
	})
	pinned := existing(func() *shoot {
		s := exampleShoot()
		pinnedTo("", "a")(s)
		return s
	})
	runMutations(t, pinned, after(pinned, ValidateShootUpdate), []mutation[shoot]{
		{"pinned to another zone", pinnedTo("", "b"), []string{"Forbidden " + zones}},
		{"not pinned any more", pinnedTo(""), nil},
		{"no control plane section any more", func(s *shoot) { s.Spec.ControlPlane = nil }, nil},
		{"pinned to more zones for high availability", pinnedTo("zone", "c", "b", "a"), nil},
		{"pinned to other zones for high availability", pinnedTo("zone", "b", "c", "d"), []string{"Forbidden " + zones}},
		{"pinned to more zones for nothing", pinnedTo("node", "a", "b", "c"), []string{"Forbidden " + zones, "Invalid " + zones}},
	})
	pending := func(s *shoot) {
		s.Status.InPlaceUpdates.PendingWorkerUpdates = &gardencore.PendingWorkerUpdates{AutoInPlaceUpdate: []string{"a"}}
	}
	runMutations(t, inPlace, after(inPlace, ValidateShootUpdate), []mutation[shoot]{
		{"nothing in place", func(*shoot) {}, nil},
		{"not in place", func(s *shoot) {
			s.Spec.Provider.Workers[0].Machine.Type, s.Spec.Provider.Workers[0].Volume = "x", nil
		}, []string{"Invalid " + path + ".machine.type", "Invalid " + path + ".volume"}},
		{"older image", func(s *shoot) { s.Spec.Provider.Workers[0].Machine.Image.Version = "1.2.2" },
			[]string{"Forbidden " + path + ".machine.image.version"}},
		{"newer image", func(s *shoot) { s.Spec.Provider.Workers[0].Machine.Image.Version = "1.2.4" }, nil},
		{"changed under way", func(s *shoot) { pending(s); s.Spec.Provider.Workers[0].Maximum++ }, []string{"Forbidden " + path}},
		{"Kubernetes changed under way", func(s *shoot) { pending(s); s.Spec.Kubernetes.Version = "1.34.2" }, []string{"Forbidden " + path}},
		{"forced", func(s *shoot) {
			pending(s)
			s.Annotations = map[string]string{"gardener.cloud/operation": "force-in-place-update"}
			s.Spec.Provider.Workers[0].Maximum++
		}, nil},
	})
	runMutations(t, selfHosted, after(selfHosted, ValidateShootUpdate), []mutation[shoot]{
		{"control plane moved", func(s *shoot) { s.Spec.Provider.Workers[0].Name = "z" }, []string{"Forbidden spec.provider.workers"}},
	})
}

func TestShootOperations(t *testing.T) {
	const now, later = "metadata.annotations[gardener.cloud/operation]", "metadata.annotations[maintenance.gardener.cloud/operation]"
	asked := func(now, later string, changes ...func(*shoot)) func(*shoot) {
		return func(s *shoot) {
			s.Status.LastOperation = &gardencore.LastOperation{Type: gardencore.LastOperationTypeReconcile}
			s.Annotations = map[string]string{"gardener.cloud/operation": now, "maintenance.gardener.cloud/operation": later}
			for _, change := range changes {
				change(s)
			}
		}
	}
	phase := func(phase gardencore.CredentialsRotationPhase) func(*shoot) {
		return func(s *shoot) {
			s.Status.Credentials = &gardencore.ShootCredentials{
				Rotation: &gardencore.ShootCredentialsRotation{CertificateAuthorities: &gardencore.CARotation{Phase: phase}}}
		}
	}
	runMutations(t, exampleShoot, ValidateShoot, []mutation[shoot]{
		{"reconcile", asked("reconcile", ""), nil},
		{"unknown", asked("x", "y"), []string{"NotSupported " + now}},
		{"unknown in maintenance", asked("", "y"), []string{"NotSupported " + later}},
		{"not in parallel", asked("retry;reconcile", ""), []string{"Forbidden " + now}},
		{"in both", asked("rotate-ssh-keypair", "rotate-ssh-keypair"), []string{"Forbidden metadata.annotations"}},
		{"incompatible", asked("rotate-ca-start; rotate-ca-start-without-workers-rollout", ""), []string{"Forbidden " + now}},
		{"part of another", asked("rotate-credentials-start", "rotate-ca-start"), []string{"Forbidden " + now}},
		{"gone with 1.34", asked("rotate-etcd-encryption-key-start", ""), []string{"Forbidden " + now}},
		{"start", asked("rotate-ca-start", ""), nil},
		{"start too early", asked("rotate-ca-start", "", func(s *shoot) { s.Status.LastOperation = nil }), []string{"Forbidden " + now}},
		{"start while underway", asked("rotate-ca-start", "", phase(gardencore.RotationPrepared)), []string{"Forbidden " + now}},
		{"complete", asked("rotate-ca-complete", "", phase(gardencore.RotationPrepared)), nil},
		{"complete too early", asked("", "rotate-ca-complete"), []string{"Forbidden " + later}},
		{"asleep", asked("rotate-etcd-encryption-key", "", func(s *shoot) { s.Status.IsHibernated = true }), []string{"Forbidden " + now}},
		{"roll out", asked("rollout-workers=a", ""), nil},
		{"roll out all", asked("rollout-workers=*", ""), nil},
		{"roll out what is not there", asked("rollout-workers=x,,x", ""),
			[]string{"Required " + now, "Invalid " + now, "Duplicate " + now, "Invalid " + now, "Invalid " + now}},
		{"roll out for a rotation", asked("rotate-rollout-workers=a", ""), []string{"Forbidden " + now}},
		{"roll out for a rotation that waits", asked("rotate-rollout-workers=a", "", phase(gardencore.RotationWaitingForWorkersRollout)), nil},
	})
}
