package accesscheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

const (
	// label marks what a check creates.
	label      = "gardenlite.dev/access-check"
	namePrefix = "access-check-"
	// extension is the ServiceAccount of the extension.
	extension = "extension-check"
	// installations is the finalizer with which gardener-controller-manager deletes the ControllerInstallations of a
	// Seed.
	installations = "core.gardener.cloud/controllerregistration"

	core          = "/apis/core.gardener.cloud/v1beta1"
	security      = "/apis/security.gardener.cloud/v1alpha1"
	seedmgmt      = "/apis/seedmanagement.gardener.cloud/v1alpha1"
	csrs          = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	reviews       = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	inGarden      = "/api/v1/namespaces/garden"
	garden        = "garden"
	deletedSeeds  = inGarden + "/configmaps/deleted-seeds"
	removeTimeout = 30 * time.Second
	graphTimeout  = 5 * time.Second
	// shootsRead is the number of Shoots that are read to choose the victim.
	shootsRead = 100
	// installationsTimeout is how long gardener-controller-manager, if it runs, may take to delete
	// ControllerInstallations.
	installationsTimeout = 5 * time.Second
	pollInterval         = 10 * time.Millisecond
)

type place struct{ namespace, name string }

// world has the objects that the attacks use. Missing ones are empty.
type world struct {
	admin    *client
	live     bool
	allReads bool // see Options

	seed   string // of the attacker; without live, its Seed does not exist
	bucket string // the required name of the attacker's BackupBucket: the UID of the Seed, random without live

	victim       string
	provider     corev1beta1.SeedProvider // also used for the attacker
	backup       place                    // the Secret with the credentials for the victim's backups
	victimBucket string
	victimEntry  place
	shoot        place // a Shoot on the victim
	shootID      string
	shootUID     string
}

func (w *world) namespace() string       { return seedidentity.NamespacePrefix + w.seed }
func (w *world) victimNamespace() string { return seedidentity.NamespacePrefix + w.victim }

// look chooses the victim, the Seed with the most Shoots unless one is named, and finds its objects. It only reads.
func (w *world) look(ctx context.Context, victim string) error {
	seeds, shoots := &corev1beta1.SeedList{}, &corev1beta1.ShootList{}
	some := fmt.Sprintf("/shoots?limit=%d", shootsRead)
	if victim != "" {
		some += "&" + onSeed(victim)
	}
	err := errors.Join(w.admin.must(ctx, get(core+"/seeds"), seeds), w.admin.must(ctx, get(core+some), shoots))
	if err != nil {
		return fmt.Errorf("looking for a Seed to attack: %w", err)
	}
	on := map[string]int{}
	for _, shoot := range shoots.Items {
		if shoot.Spec.SeedName != nil {
			on[*shoot.Spec.SeedName]++
		}
	}
	var chosen *corev1beta1.Seed
	for i := range seeds.Items {
		seed := &seeds.Items[i]
		if _, own := seed.Labels[label]; own || victim != "" && seed.Name != victim {
			continue
		}
		if chosen == nil || on[seed.Name] > on[chosen.Name] {
			chosen = seed
		}
	}
	switch {
	case chosen == nil && victim != "":
		return fmt.Errorf("there is no Seed %q: name one that there is with --victim", victim)
	case chosen == nil:
		return errors.New("there is no Seed that could be attacked: add one, so that the check has something to want")
	}
	w.victim, w.provider = chosen.Name, chosen.Spec.Provider
	if b := chosen.Spec.Backup; b != nil && b.CredentialsRef != nil && b.CredentialsRef.Kind == "Secret" {
		w.backup = place{b.CredentialsRef.Namespace, b.CredentialsRef.Name}
	}
	for i := range shoots.Items {
		if shoot := &shoots.Items[i]; shoot.Spec.SeedName != nil && *shoot.Spec.SeedName == w.victim {
			w.shoot, w.shootUID, w.shootID = place{shoot.Namespace, shoot.Name}, string(shoot.UID), shoot.Status.TechnicalID
			break
		}
	}
	return w.lookForBackups(ctx, string(chosen.UID))
}

func (w *world) lookForBackups(ctx context.Context, uid string) error {
	err := w.admin.must(ctx, get(core+"/backupbuckets/"+uid), nil)
	if err == nil {
		w.victimBucket = uid
	} else if !hasCode(err, http.StatusNotFound) {
		return err
	}
	entries := &corev1beta1.BackupEntryList{}
	if err := w.admin.must(ctx, get(core+"/backupentries?limit=1&"+onSeed(w.victim)), entries); err != nil {
		return err
	}
	if len(entries.Items) > 0 {
		w.victimEntry = place{entries.Items[0].Namespace, entries.Items[0].Name}
	}
	return nil
}

// onSeed selects objects by the seed in their specification.
func onSeed(seed string) string { return "fieldSelector=" + url.QueryEscape("spec.seedName="+seed) }

func labelled(o object) object {
	metadata := o["metadata"].(object)
	if metadata["labels"] == nil {
		metadata["labels"] = object{}
	}
	metadata["labels"].(object)[label] = "true"
	return o
}

// populate creates the throwaway seed. No component acts on it: it has no gardenlet, and is not visible to the
// scheduler.
func (w *world) populate(ctx context.Context) error {
	name := w.seed
	created := &corev1.Namespace{} // only the UID is used
	identity := meta("security.gardener.cloud/v1alpha1", "WorkloadIdentity", garden, name,
		object{"spec": object{"audiences": []any{name}, "targetSystem": object{"type": w.provider.Type}}})
	watched := object{"apiVersion": "v1", "kind": "ConfigMap", "name": name} // see keepWatch
	for _, r := range []*request{
		post(inGarden+"/secrets", meta("v1", "Secret", garden, name, nil)),
		post(inGarden+"/configmaps", meta("v1", "ConfigMap", garden, name, nil)),
		post(security+"/namespaces/garden/workloadidentities", identity),
		post(core+"/seeds", w.seedObject(w.ref(), object{
			"settings":  object{"scheduling": object{"visible": false}},
			"resources": []any{object{"name": "watched", "resourceRef": watched}}})),
	} {
		labelled(r.body.(object))
		if err := w.admin.must(ctx, r, created); err != nil {
			return fmt.Errorf("making the throwaway seed: %w", err)
		}
	}
	w.bucket = string(created.UID)
	namespace := meta("v1", "Namespace", "", w.namespace(), nil)
	namespace["metadata"].(object)["ownerReferences"] = []any{object{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "name": name, "uid": w.bucket,
		"controller": true, "blockOwnerDeletion": true}}
	err := w.admin.must(ctx, post("/api/v1/namespaces", labelled(namespace)), nil)
	if hasCode(err, http.StatusConflict) { // gardener-controller-manager was faster
		more := object{"metadata": object{"labels": object{label: "true"}}}
		err = w.admin.must(ctx, patch("/api/v1/namespaces/"+w.namespace(), more), nil)
	}
	if err != nil {
		return fmt.Errorf("making the namespace of the throwaway seed: %w", err)
	}
	account := meta("v1", "ServiceAccount", w.namespace(), extension, nil)
	for _, r := range []*request{
		post("/api/v1/namespaces/"+w.namespace()+"/serviceaccounts", account),
		post(core+"/backupbuckets", w.bucketObject(w.bucket)),
		post(core+"/namespaces/garden/backupentries", entryObject(garden, name, name, w.bucket)),
	} {
		if err := w.admin.must(ctx, &request{r.method, r.path, labelled(r.body.(object))}, nil); err != nil {
			return fmt.Errorf("making the throwaway seed: %w", err)
		}
	}
	return nil
}

// awaitGraph waits until the garden's resource graph relates the throwaway objects to the attacker's seed, at most
// graphTimeout. Objects that are still missing then show in the results.
func (w *world) awaitGraph(ctx context.Context, gardenlet *client) {
	ctx, cancel := context.WithTimeout(ctx, graphTimeout)
	defer cancel()
	for _, r := range []*request{
		review("get", "", "secrets", "", garden, w.seed), review("watch", "", "configmaps", "", garden, w.seed),
		review("create", "security.gardener.cloud", "workloadidentities", "token", garden, w.seed),
		review("patch", "core.gardener.cloud", "backupbuckets", "", "", w.bucket),
		review("patch", "core.gardener.cloud", "backupentries", "", garden, w.seed),
	} {
		_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
			return allowed(ctx, gardenlet, r), nil
		})
	}
}

// cleanUp removes the objects of this check, and those of an earlier check that was killed.
func (w *world) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	var errs []error
	for _, all := range []string{
		core + "/namespaces/garden/backupentries", core + "/backupbuckets", core + "/seeds",
		security + "/namespaces/garden/workloadidentities", inGarden + "/secrets", inGarden + "/configmaps", csrs,
		"/api/v1/namespaces",
	} {
		errs = append(errs, w.removeAll(ctx, all))
	}
	return errors.Join(append(errs, w.forgetSeeds(ctx))...)
}

// removeAll deletes the objects of a resource that have the label, and waits until they are gone.
func (w *world) removeAll(ctx context.Context, path string) error {
	begin := time.Now()
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		list := &corev1.NamespaceList{} // only the metadata is used
		if err := w.admin.must(ctx, get(path+"?labelSelector="+label), list); err != nil {
			return false, err
		}
		// The label alone could be on an object that the check did not create.
		list.Items = slices.DeleteFunc(list.Items, func(o corev1.Namespace) bool {
			return !strings.Contains(o.Name, namePrefix) && path != core+"/backupbuckets"
		})
		for i := range list.Items {
			keep := slices.Contains(list.Items[i].Finalizers, installations) && time.Since(begin) < installationsTimeout
			if err := w.removeOne(ctx, path+"/"+list.Items[i].Name, keep); err != nil {
				return false, err
			}
		}
		return len(list.Items) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("removing %s with the label %s: %w", path, label, err)
	}
	return nil
}

// removeOne deletes an object and its finalizers, because no component acts on it. If installed is set, the finalizer
// installations stays. The finalizers of a Namespace are in its specification, and stay.
func (w *world) removeOne(ctx context.Context, path string, installed bool) error {
	metadata := object{"annotations": object{"confirmation.gardener.cloud/deletion": "true"}, "finalizers": nil}
	if installed {
		metadata["finalizers"] = []string{installations}
	}
	for _, r := range []*request{patch(path, object{"metadata": metadata}), remove(path)} {
		err := w.admin.must(ctx, r, nil)
		deleted := hasCode(err, http.StatusNotFound) || hasCode(err, http.StatusConflict) // the object is gone or being deleted
		if err != nil && !deleted {
			return err
		}
	}
	return nil
}

// forgetSeeds removes throwaway seeds from the list of deleted Seeds, whose gardenlets' certificates are refused. The
// keys of these certificates were never stored.
func (w *world) forgetSeeds(ctx context.Context) error {
	deleted := &corev1.ConfigMap{}
	if err := w.admin.must(ctx, get(deletedSeeds), deleted); hasCode(err, http.StatusNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	gone := object{}
	for seed := range deleted.Data {
		if strings.HasPrefix(seed, namePrefix) {
			gone[seed] = nil
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return w.admin.must(ctx, patch(deletedSeeds, object{"data": gone}), nil)
}
