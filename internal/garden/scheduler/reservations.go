package scheduler

import (
	"sync"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// reservations are the seeds that Shoots have been given while the cache does not show it yet. They make the decisions one
// after the other, so that none is made without knowing of the one before; the bindings themselves go in parallel.
type reservations struct {
	mutex sync.Mutex
	seeds map[types.UID]reservation
}

type reservation struct {
	// seed is the one that was decided on, "" after its binding has failed.
	seed string
	// doubtful are the seeds of bindings that were not answered: they may have come to be.
	doubtful sets.Set[string]
	// bound says that the garden has confirmed the binding.
	bound bool
}

// seedNames are the seeds that the reservation takes room on.
func (r reservation) seedNames() sets.Set[string] {
	seedNames := sets.New[string]().Union(r.doubtful)
	if r.seed != "" {
		seedNames.Insert(r.seed)
	}
	return seedNames
}

// decide calls choose with how many Shoots each seed has, reservations of other Shoots included, and reserves a place on
// the seed that it returns. A Shoot that was bound already keeps its seed, and settled is true.
func (r *reservations) decide(shoot *gardencorev1beta1.Shoot, list func() ([]gardencorev1beta1.Shoot, error),
	choose func(usage map[string]int) (seed string)) (settled bool, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	// Listed under the lock: what is forgotten below must not be missing in the list.
	shoots, err := list()
	if err != nil {
		return false, err
	}
	r.forgetVisible(shoots)
	if r.seeds[shoot.UID].bound {
		return true, nil
	}
	usage := Usage(shoots)
	for uid, other := range r.seeds {
		if uid == shoot.UID {
			continue
		}
		for seed := range other.seedNames() {
			usage[seed]++
		}
	}
	if seed := choose(usage); seed != "" {
		r.reserve(shoot.UID, seed)
	}
	return false, nil
}

func (r *reservations) reserve(uid types.UID, seed string) {
	if r.seeds == nil {
		r.seeds = map[types.UID]reservation{}
	}
	r.seeds[uid] = reservation{seed: seed, doubtful: r.seeds[uid].doubtful}
}

// forgetVisible drops the reservations of Shoots that have their seed in the cache, or are gone from it.
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

// fail is called after a binding that has failed. What was certainly refused gives its place back; what may have come to be
// keeps it until the cache shows the Shoot with a seed, or not at all.
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
