package restriction

import (
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"k8s.io/utils/ptr"
)

func attacksByDeleting() []attack {
	evil := gardenletA
	return []attack{
		{
			// To the authorizer, a Secret to which nothing refers looks like one that does not exist. No seed may
			// delete it: DELETE secrets garden-other/database, configmaps garden-dev/settings, shootstates
			// garden-dev/on-b.
			name: "deletion of what the graph does not have",
			given: func(w *world) {
				w.put(secrets.resource, secret("garden-other", "database"))
				w.put(configMaps.resource, withContent("garden-dev", "settings"))
				w.put(internalSecrets.resource, named[corev1beta1.InternalSecret]("garden-other", "database"))
				w.put(shootStates.resource, named[corev1beta1.ShootState]("garden-dev", "unreferenced"))
			},
			steps: []step{
				{by: evil, resource: secrets, delete: "garden-other/database", want: refuse, because: "does not belong"},
				{by: evil, resource: configMaps, delete: "garden-dev/settings", want: refuse, because: "does not belong"},
				{by: evil, resource: internalSecrets, delete: "garden-other/database", want: refuse, because: "does not belong"},
				{by: extensionA, resource: shootStates, delete: "garden-dev/unreferenced", want: refuse, because: "extensions"},
			},
		},
		{
			// The entries of a ManagedSeed have a path to the seed of its shoot. The parent deletes or changes one: DELETE
			// backupentries garden-dev/of-child; PATCH it.
			name:  "BackupEntry of a ManagedSeed",
			given: func(w *world) { w.put(backupEntries.resource, entry("of-child", "grown", "uid-seed-a", "")) },
			steps: []step{
				{by: evil, resource: backupEntries, delete: "garden-dev/of-child", want: refuse, because: "does not belong"},
				{by: extensionA, resource: backupEntries, delete: "garden-dev/of-child", want: refuse, because: "extensions"},
				{by: evil, resource: backupEntries, update: changed(entry("of-child", "grown", "uid-seed-a", ""),
					withFinalizer[*corev1beta1.BackupEntry]), want: refuse, because: "does not belong"},
			},
		},
		{
			// a has a path to objects that all seeds share, and deletes one: DELETE configmaps
			// kube-system/cluster-identity. Or it first sets a shoot that never existed as the owner, so that the
			// garbage collector deletes the object: PATCH {"metadata":{"ownerReferences":[…]}}.
			name: "deletion of what all seeds share",
			given: func(w *world) {
				w.put(configMaps.resource, withContent("kube-system", "cluster-identity"))
				w.put(secrets.resource, landscapes("dns"))
			},
			steps: []step{
				{by: evil, resource: configMaps, delete: "kube-system/cluster-identity", want: refuse, because: "all seeds share"},
				{by: evil, resource: configMaps, update: ownedBy("Shoot", "never", "uid-never", withContent("kube-system", "cluster-identity")),
					want: refuse, because: "suffixes"},
				{by: evil, resource: secrets, delete: "garden/dns", want: refuse, because: "landscape's"},
				{by: evil, resource: secrets, update: secret("garden", "dns"), want: refuse, because: "does not belong"},
				{by: evil, resource: secrets, update: ownedBy("Shoot", "never", "uid-never", landscapes("dns")), want: refuse,
					because: "does not belong"},
			},
		},
		{
			// Shoots on a and on b use a project's credentials. a deletes them, or makes the garbage collector do that:
			// DELETE secrets garden-dev/infra; PATCH {"metadata":{"ownerReferences":[…]}}.
			name: "deletion of a project's credentials",
			given: func(w *world) {
				uses := func(s *corev1beta1.Shoot) { s.Spec.CredentialsBindingName = ptr.To("infra") }
				w.put(credentialsBindings,
					named("garden-dev", "infra", func(b *securityv1alpha1.CredentialsBinding) { b.CredentialsRef = *secretRef("garden-dev", "infra") }))
				w.put(shoots.resource, shootOn("garden-dev", "on-a", "a", uses), shootOn("garden-dev", "on-b", "b", uses))
				w.put(secrets.resource, secret("garden-dev", "infra"))
			},
			steps: []step{
				{by: evil, resource: secrets, delete: "garden-dev/infra", want: refuse, because: "seed b"},
				{by: evil, resource: secrets, update: ownedBy("Shoot", "never", "uid-never", secret("garden-dev", "infra")),
					want: refuse, because: "does not belong"},
				{by: evil, resource: secrets, delete: "garden-dev/infra", want: refuse, because: "seed b"},
			},
		},
		{
			// a publishes keys for its own shoot, and labels the Secret of b's shoot as that of its own shoot, or as
			// that of a shoot that no longer exists, so that it may delete it: PATCH secrets
			// gardener-system-shoot-issuer/dev--uid-on-b; DELETE it.
			name: "deletion of another issuer's keys",
			given: func(w *world) {
				w.put(secrets.resource, issuerSecret("dev--uid-on-b", "garden-dev", "on-b"))
			},
			steps: []step{
				{by: evil, resource: secrets, delete: "gardener-system-shoot-issuer/dev--uid-on-b", want: refuse, because: "does not belong"},
				{by: evil, resource: secrets, update: issuerSecret("dev--uid-on-b", "garden-dev", "on-a"), want: refuse,
					because: "must end with --uid-on-a"},
				{by: evil, resource: secrets, update: issuerSecret("dev--uid-on-b", "garden-dev", "gone"), want: refuse, because: "does not belong"},
				{by: evil, resource: secrets, delete: "gardener-system-shoot-issuer/dev--uid-on-b", want: refuse, because: "does not belong"},
			},
		},
	}
}
