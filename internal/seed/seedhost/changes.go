package seedhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/supervisor"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// changes are how the seeds of a landscape differ from those that --seeds starts. They are stored in its state
// directory.
type changes struct {
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

func (h *Host) readChanges() (c changes, err error) {
	file := filepath.Join(h.cfg.Dir, statedir.SeedsFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	for _, name := range c.Added {
		err = errors.Join(err, checkSeedName(name))
	}
	if err != nil {
		return c, fmt.Errorf("reading which seeds were added and removed, %s: %w; "+
			"delete the file, and the seeds of --seeds start alone", file, err)
	}
	return c, nil
}

// writeChange stores that a seed was added or removed.
func (h *Host) writeChange(name string, isAdded bool) error {
	c, err := h.readChanges()
	if err != nil {
		return err
	}
	is := func(other string) bool { return other == name }
	c.Added, c.Removed = slices.DeleteFunc(c.Added, is), slices.DeleteFunc(c.Removed, is)
	switch isFromFlag := slices.Contains(SeedNames(h.count), name); {
	case isAdded && !isFromFlag:
		c.Added = append(c.Added, name)
	case !isAdded && isFromFlag:
		c.Removed = append(c.Removed, name)
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return fsutil.WriteKept(h.keeper(), filepath.Join(h.cfg.Dir, statedir.SeedsFile), append(data, '\n'), 0o600)
}

// followChanges starts the clusters of the seeds that another process has added, and stops those of the seeds that it has removed.
func (h *Host) followChanges(ctx context.Context) error {
	changes, err := h.readChanges()
	if err != nil {
		return err
	}
	wanted, running := changes.apply(SeedNames(h.count)), h.seedNames()
	for _, name := range wanted {
		if slices.Contains(running, name) {
			continue
		}
		cluster, err := h.startSeedCluster(ctx, name, 0, 0)
		if err != nil {
			return fmt.Errorf("starting the cluster of seed %s: %w", name, err)
		}
		h.seeds.set(name, cluster)
	}
	for _, name := range running {
		if slices.Contains(wanted, name) {
			continue
		}
		cluster := h.seeds.cluster(name)
		h.seeds.set(name, nil)
		if err := h.stopSeedCluster(name, cluster); err != nil { // the other process has deleted its data
			return err
		}
	}
	return nil
}

// apply returns the names of the seeds after the changes.
func (c changes) apply(names []string) []string {
	for _, name := range c.Added {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(c.Removed, name) })
}

func checkSeedName(name string) error {
	const most = validation.DNS1123LabelMaxLength - len(statedir.SeedPrefix) // for the name of the Node in its cluster
	if len(name) > most || len(validation.IsDNS1123Label(name)) > 0 {
		return usage.Errorf("%q: the name of a seed has lower case letters, digits and dashes, begins and ends with a "+
			"letter or digit, and has %d characters at most", name, most)
	}
	return nil
}

// change is that of the deployer, if this process works on the seeds.
func (h *Host) change(ctx context.Context) (changing context.Context, done func(), err error) {
	w := h.work.Load()
	if w == nil {
		return nil, nil, errNotLeading
	}
	return w.deployer.change(ctx)
}

// change returns a context that also ends when the gardenlets are stopped, which waits until done is called.
func (d *deployer) change(ctx context.Context) (changing context.Context, done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return nil, nil, errStopping
	}
	d.working.Add(1)
	changing, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(d.ctx, cancel)
	return changing, func() { stop(); cancel(); d.working.Done() }, nil
}

// AddSeed starts a further seed, also at later starts, and returns when it is ready. It is also how a seed starts
// again that a smaller --seeds left out. One seed is added or removed at a time.
func (h *Host) AddSeed(ctx context.Context, name string) error {
	if err := checkSeedName(name); err != nil {
		return err
	}
	ctx, done, err := h.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	if h.find(name) != nil || h.seeds.cluster(name) != nil {
		return fmt.Errorf("seed %s runs already", name)
	}
	garden, err := newClient(h.garden.Admin)
	if err != nil {
		return err
	}
	err = garden.Get(ctx, client.ObjectKey{Name: name}, &gardencorev1beta1.Seed{})
	if err == nil && !slices.Contains(statedir.LocalSeeds(h.cfg.Dir), name) {
		return fmt.Errorf("there is a Seed %s already, whose gardenlet runs elsewhere: choose another name", name)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Seed %s: %w", name, err)
	}
	begin := h.cfg.Clock.Now()
	cluster, err := h.startSeedCluster(ctx, name, 0, 0)
	if err != nil {
		h.cfg.Status.Remove(statedir.SeedPrefix + name)
		return fmt.Errorf("starting the cluster of seed %s: %w", name, err)
	}
	h.seeds.set(name, cluster)
	if err := h.writeChange(name, true); err != nil {
		return err
	}
	if err := PrepareSeed(ctx, h.garden.Admin, name); err != nil {
		return err
	}
	if err := h.adopt(cluster, gardenletConfiguration(name)); err != nil {
		return err
	}
	return h.waitSeedReady(ctx, name, begin)
}

// RemoveSeed deletes the Seed of a seed that BeginSeeds or AddSeed has started, waits until it is gone, and deletes
// its cluster. It refuses to while there are Shoots on the seed.
func (h *Host) RemoveSeed(ctx context.Context, name string) error {
	ctx, done, err := h.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	garden, err := newClient(h.garden.Admin)
	if err != nil {
		return err
	}
	if err := h.checkRemovable(ctx, garden, name); err != nil {
		return err
	}
	if err := deleteSeed(ctx, garden, name); err != nil {
		return err
	}
	if err := h.work.Load().deployer.forget(name); err != nil {
		return err
	}
	cluster := h.seeds.cluster(name)
	h.seeds.set(name, nil)
	// Without its Seed, the rest of it goes also if nobody waits for it any more.
	return errors.Join(h.writeChange(name, false), h.removeSeedCluster(context.WithoutCancel(ctx), name, cluster))
}

// forget stops the components of a seed of the landscape for good.
func (d *deployer) forget(name string) error {
	u := d.find(name)
	if u == nil { // they could not be started
		return nil
	}
	removed := make(chan error, 1)
	d.work(u, func(ctx context.Context) error {
		removed <- d.remove(ctx, u)
		return nil
	})
	select {
	case err := <-removed:
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.units, name)
		return err
	case <-d.ctx.Done():
		return errStopping
	}
}

// checkRemovable returns why a seed cannot be removed.
func (h *Host) checkRemovable(ctx context.Context, garden client.Client, name string) error {
	if h.seeds.cluster(name) == nil {
		switch u := h.find(name); {
		case u != nil:
			return fmt.Errorf("seed %s was deployed for a ManagedSeed or a Gardenlet: delete that", name)
		case slices.Contains(statedir.LocalSeeds(h.cfg.Dir), name):
			return fmt.Errorf("seed %s does not run: start it with \"gardenlite seed add %s\", then remove it", name, name)
		case garden.Get(ctx, client.ObjectKey{Name: name}, &gardencorev1beta1.Seed{}) == nil:
			return fmt.Errorf("the gardenlet of seed %s runs elsewhere: while it does, confirm the deletion with "+
				"\"kubectl annotate seed %s %s=true\", then \"kubectl delete seed %s\"", name, name, constants.ConfirmationDeletion, name)
		}
		return fmt.Errorf("there is no seed %q: \"kubectl get seeds\" shows those that there are", name)
	}
	if h.shared() && slices.Contains(SeedNames(h.count), name) {
		return fmt.Errorf("seed %s is one of --seeds %d, and other processes on the same datastore may run it: "+
			"stop them all, and start them with fewer seeds", name, h.count)
	}
	shoots, err := shootsOn(ctx, garden, name)
	if err == nil && len(shoots) > 0 {
		err = fmt.Errorf("there are Shoots on seed %s: delete or migrate them first: %s", name, strings.Join(shoots, ", "))
	}
	return err
}

// shootsOn returns the Shoots on a seed, as PROJECT/NAME.
func shootsOn(ctx context.Context, garden client.Client, seed string) (names []string, err error) {
	shoots, projects := &gardencorev1beta1.ShootList{}, &gardencorev1beta1.ProjectList{}
	// The API server maintains the label for the Shoot's seeds in spec and status.
	onSeed := client.MatchingLabels{constants.LabelPrefixSeedName + seed: "true"}
	if err := errors.Join(garden.List(ctx, shoots, onSeed), garden.List(ctx, projects)); err != nil {
		return nil, fmt.Errorf("listing the Shoots on seed %s: %w", seed, err)
	}
	for _, shoot := range shoots.Items {
		project := shoot.Namespace
		for _, p := range projects.Items {
			if ptr.Deref(p.Spec.Namespace, "") == shoot.Namespace {
				project = p.Name
			}
		}
		names = append(names, project+"/"+shoot.Name)
	}
	slices.Sort(names)
	return names, nil
}

// deleteSeed confirms and requests the deletion of a Seed, and waits until its gardenlet has let it go.
func deleteSeed(ctx context.Context, garden client.Client, name string) error {
	s := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
	confirmed := s.DeepCopy()
	metav1.SetMetaDataAnnotation(&confirmed.ObjectMeta, constants.ConfirmationDeletion, "true")
	err := garden.Patch(ctx, confirmed, client.MergeFrom(s))
	if err == nil {
		err = garden.Delete(ctx, s)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Seed %s: %w", name, err)
	}
	reason := ""
	err = supervisor.WaitFor(ctx, "Seed "+name+" to be gone", func() bool {
		err := garden.Get(ctx, client.ObjectKeyFromObject(s), s)
		if operation := s.Status.LastOperation; err == nil && operation != nil {
			reason = ": " + operation.Description
		}
		return apierrors.IsNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("%w%s; it is being deleted, run the command again when nothing needs it any more", err, reason)
	}
	return nil
}
