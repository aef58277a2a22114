package shoot

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
)

// botanist executes one operation on a Shoot. It is kept between the runs of the flow until the operation has ended or
// failed, so that a run does not repeat completed steps. Nothing depends on that: after a restart of the gardenlet
// another botanist begins from the start.
type botanist struct {
	*Reconciler
	gardenData
	operationKey
	// done has the names of the completed tasks, requested the keys of the objects for which this botanist has requested an
	// operation.
	done, requested sync.Map

	authorities map[string]shootsecrets.Pair
	signingKey  shootsecrets.Pair
	sshKeypair  shootsecrets.Pair
	// encryption is the key that encrypts data. switching says that this operation has made it the key for new data.
	encryption shootsecrets.Encryption
	switching  bool
	// observability is the password for the observability components, nil if there are none.
	observability map[string][]byte
	// rollouts maps worker pools to when a user last requested their rollout, in seconds since 1970.
	rollouts map[string]string
	// infrastructure is the provider status of the Infrastructure.
	infrastructure *runtime.RawExtension
	// endpoint is the address of the API server, "" if it has none yet.
	endpoint string
	// userData has the names of the Secrets with the user data of machines, nodeConfigs the configuration of their
	// nodes. The keys are the names of the OperatingSystemConfigs.
	userData    map[string]string
	nodeConfigs map[string][]byte
	// asleep says that the Shoot hibernates, and that its API server is already stopped.
	asleep bool
	// state is the ShootState from which a Shoot is restored.
	state *corev1beta1.ShootState
	// shootClient accesses the shoot, nil if there is no connection yet.
	shootClient *ShootClient
}

// operationKey identifies an operation while it is in progress.
type operationKey struct {
	uid  types.UID
	kind corev1beta1.LastOperationType
	// since is when the operation began. Requests to extensions that are older are repeated.
	since      time.Time
	generation int64
}

func keyOf(shoot *corev1beta1.Shoot, kind corev1beta1.LastOperationType) operationKey {
	key := operationKey{uid: shoot.UID, kind: kind, generation: shoot.Generation}
	if start := shoot.Status.RetryCycleStartTime; start != nil {
		key.since = start.UTC()
	}
	return key
}

// botanistCache holds the botanists of the operations that are in progress, at most one for each Shoot.
type botanistCache struct {
	mu        sync.Mutex
	botanists map[types.NamespacedName]*botanist
	// keys maps technical IDs to Shoots, for the watches of the seed.
	keys map[string]types.NamespacedName
}

// find returns the botanist of an operation that is in progress, nil if there is none.
func (b *botanistCache) find(shoot *corev1beta1.Shoot, kind corev1beta1.LastOperationType) *botanist {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := client.ObjectKeyFromObject(shoot)
	found := b.botanists[key]
	if found == nil || found.operationKey != keyOf(shoot, kind) || shoot.Status.ObservedGeneration != shoot.Generation ||
		!operation.Is(shoot.Status.LastOperation, kind, corev1beta1.LastOperationStateProcessing) {
		b.drop(key)
		return nil
	}
	found.shoot = shoot.DeepCopy()
	return found
}

// keep stores the botanist of an operation until it has ended or failed.
func (b *botanistCache) keep(kept *botanist) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.botanists == nil {
		b.botanists, b.keys = map[types.NamespacedName]*botanist{}, map[string]types.NamespacedName{}
	}
	key := client.ObjectKeyFromObject(kept.shoot)
	b.drop(key)
	b.botanists[key] = kept
	b.keys[kept.namespace()] = key
}

// forget drops the botanist, so that the operation begins from the start. Events in the seed still trigger reconciliations.
func (b *botanistCache) forget(shoot *corev1beta1.Shoot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(client.ObjectKeyFromObject(shoot))
}

// end drops the botanist of an operation that has ended, or whose Shoot does not exist any more. Events in the seed do not
// trigger reconciliations any more.
func (b *botanistCache) end(shoot types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(shoot)
	maps.DeleteFunc(b.keys, func(_ string, key types.NamespacedName) bool { return key == shoot })
}

func (b *botanistCache) drop(shoot types.NamespacedName) {
	if dropped := b.botanists[shoot]; dropped != nil {
		dropped.close()
		delete(b.botanists, shoot)
	}
}

// of returns the Shoot with a technical ID if an operation on it is in progress or has failed.
func (b *botanistCache) of(technicalID string) (types.NamespacedName, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, ok := b.keys[technicalID]
	return key, ok
}

// newBotanist returns a botanist for an operation, whose begin it takes from the Shoot's status.
func (r *Reconciler) newBotanist(a gardenData, kind corev1beta1.LastOperationType) *botanist {
	return &botanist{Reconciler: r, gardenData: a, operationKey: keyOf(a.shoot, kind)}
}

// task returns a task of a flow that is executed only once in an operation.
func (b *botanist) task(name string, do func(context.Context) error, after ...string) flow.Task {
	return flow.Task{Name: name, After: after, Do: func(ctx context.Context) error {
		if _, done := b.done.Load(name); done {
			return nil
		}
		if err := do(ctx); err != nil {
			return err
		}
		b.done.Store(name, true)
		return nil
	}}
}

// unless skips a task if skip is true.
func unless(skip bool, task flow.Task) flow.Task {
	task.Skip = task.Skip || skip
	return task
}

// namespace returns the namespace of the Shoot's control plane in the seed.
func (b *botanist) namespace() string { return b.shoot.Status.TechnicalID }

func (b *botanist) restores() bool { return b.kind == corev1beta1.LastOperationTypeRestore }

func (b *botanist) workerless() bool { return len(b.shoot.Spec.Provider.Workers) == 0 }

func (b *botanist) hibernates() bool { return cluster.IsHibernated(b.shoot) }

// hasSSH reports whether SSH access to the Shoot's machines is enabled.
func hasSSH(shoot *corev1beta1.Shoot) bool {
	settings := shoot.Spec.Provider.WorkersSettings
	return len(shoot.Spec.Provider.Workers) > 0 && (settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled)
}

// hasObservability reports whether the Shoot has observability components. Shoots for tests have none, as in Gardener.
func hasObservability(shoot *corev1beta1.Shoot) bool {
	return ptr.Deref(shoot.Spec.Purpose, "") != corev1beta1.ShootPurposeTesting
}

// secrets returns the manager of the Shoot's secrets.
func (b *botanist) secrets() *shootsecrets.Manager {
	return &shootsecrets.Manager{Client: b.SeedClient, Reader: b.SeedReader, Clock: b.Clock, Namespace: b.namespace(), SSHBits: b.SSHKeyBits}
}

// operations returns the operations that the operation annotation of a Shoot requests.
func operations(shoot *corev1beta1.Shoot) []string {
	var all []string
	for _, requested := range strings.Split(shoot.Annotations[constants.GardenerOperation], constants.GardenerOperationsSeparator) {
		if requested = strings.TrimSpace(requested); requested != "" {
			all = append(all, requested)
		}
	}
	return all
}
