package kubeconfig

import (
	"crypto"
	"runtime"
	"sync"
	"time"
)

const (
	// ecdsaAhead and rsaAhead are how many keys lie ready at most. A kubeconfig with an RSA key would take half a second
	// else, and one with an ECDSA key a tenth more than now.
	ecdsaAhead = 512
	rsaAhead   = 2
	// keysAfter is how long after a key was taken others are made: not while many are asked for at once.
	keysAfter = time.Second
)

// newKey is a key that nobody has yet.
type newKey struct {
	signer crypto.Signer
	pem    []byte
}

// keys are keys that are made ahead. They are in memory only, and each is given away once.
type keys struct {
	make func() (newKey, error)
	most int

	mu      sync.Mutex
	ready   []newKey
	filling bool
	closed  bool
}

func newKeys(a Algorithm) *keys {
	most := ecdsaAhead
	if a == RSA {
		most = rsaAhead
	}
	return &keys{make: a.generate, most: most}
}

// take returns a key, which it makes if none is ready.
func (k *keys) take() (newKey, error) {
	if key, ok := k.pop(); ok {
		return key, nil
	}
	return k.make()
}

func (k *keys) pop() (key newKey, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.filling && !k.closed {
		k.filling = true
		time.AfterFunc(keysAfter, k.fill)
	}
	last := len(k.ready) - 1
	if last < 0 {
		return key, false
	}
	key, k.ready[last] = k.ready[last], newKey{}
	k.ready = k.ready[:last]
	return key, true
}

// fill makes keys until there are enough. If one cannot be made, whoever takes the next one hears of it.
func (k *keys) fill() {
	for k.more() {
		key, err := k.make()
		if !k.add(key, err) {
			return
		}
		runtime.Gosched() // this can wait
	}
}

// more says whether another key is to be made. If not, the next that is taken begins anew.
func (k *keys) more() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.filling = len(k.ready) < k.most && !k.closed
	return k.filling
}

func (k *keys) add(key newKey, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil || k.closed {
		k.filling = false
		return false
	}
	k.ready = append(k.ready, key)
	return true
}

// close forgets all keys, and makes none ahead any more.
func (k *keys) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready, k.closed = nil, true
}
