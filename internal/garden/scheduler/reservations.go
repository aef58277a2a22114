package scheduler

import (
	"sync"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// reservations are the seeds of Shoots whose binding is not in the cache yet. Decisions are made sequentially, so
// that each takes the previous ones into account; the bindings themselves are written in parallel.
type reservations struct {
	mutex sync.Mutex
	seeds map[types.UID]reservation
}

type reservation struct {
	// seed is the chosen seed, "" after its binding has failed.
	seed string
	// doubtful are the seeds of bindings without a response: the Shoot may be bound to them.
	doubtful sets.Set[string]
	// bound says that the API server has confirmed the binding.
	bound bool
}

// seedNames returns the seeds on which the reservation takes a place.
func (r reservation) seedNames() sets.Set[string] {
	seedNames := sets.New[string]().Union(r.doubtful)
	if r.seed != "" {
		seedNames.Insert(r.seed)
	}
	return seedNames
}

// decide calls choose, and reserves a place on the returned seed. choose may count the Shoots of each seed, including the
// reservations of other Shoots. If the Shoot is bound already, it keeps its seed, and settled is true.
func (r *reservations) decide(shoot *gardencorev1beta1.Shoot, list func() ([]gardencorev1beta1.Shoot, error),
	choose func(count func() (map[string]int, error)) (seed string)) (settled bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.seeds[shoot.UID].bound {
		return true
	}
	seed := choose(func() (map[string]int, error) {
		// The Shoots are listed under the lock: a reservation is dropped only if this list contains its binding.
		shoots, err := list()
		if err != nil {
			return nil, err
		}
		r.forgetVisible(shoots)
		return r.usage(shoots, shoot.UID), nil
	})
	if seed != "" {
		if r.seeds == nil {
			r.seeds = map[types.UID]reservation{}
		}
		r.seeds[shoot.UID] = reservation{seed: seed, doubtful: r.seeds[shoot.UID].doubtful}
	}
	return false
}

// usage returns the number of Shoots of each seed, including the reservations of other Shoots than the one given.
func (r *reservations) usage(shoots []gardencorev1beta1.Shoot, of types.UID) map[string]int {
	usage := ShootsPerSeed(shoots)
	for uid, other := range r.seeds {
		if uid == of {
			continue
		}
		for seed := range other.seedNames() {
			usage[seed]++
		}
	}
	return usage
}

// forgetVisible drops the reservations of Shoots that have a seed in the cache, or are not in the cache any more.
func (r *reservations) forgetVisible(shoots []gardencorev1beta1.Shoot) {
	if len(r.seeds) == 0 {
		return
	}
	waiting := map[types.UID]bool{}
	for i := range shoots {
		waiting[shoots[i].UID] = shoots[i].Spec.SeedName == nil
	}
	for uid := range r.seeds {
		if !waiting[uid] {
			delete(r.seeds, uid)
		}
	}
}

// confirm keeps the reservation until the cache shows the binding.
func (r *reservations) confirm(uid types.UID) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if reserved, ok := r.seeds[uid]; ok {
		reserved.bound = true
		r.seeds[uid] = reserved
	}
}

// fail is called after a binding has failed. A binding that was certainly refused frees its place. Otherwise the
// place stays reserved until the Shoot has a seed in the cache, or is not in the cache any more.
func (r *reservations) fail(uid types.UID, refused bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	reserved := r.seeds[uid]
	if !refused && reserved.seed != "" {
		reserved.doubtful = sets.New(reserved.seed).Union(reserved.doubtful)
	}
	reserved.seed = ""
	if len(reserved.doubtful) == 0 {
		delete(r.seeds, uid)
		return
	}
	r.seeds[uid] = reserved
}
