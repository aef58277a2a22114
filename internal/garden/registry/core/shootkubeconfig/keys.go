package shootkubeconfig

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"runtime"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
)

// Algorithm is the algorithm of the private keys in kubeconfigs.
type Algorithm string

// The supported algorithms. RSA is the default, as in Gardener, and the only one that gardenlogin reads. Generating
// an ECDSA key takes a ten-thousandth of the time.
const (
	RSA   Algorithm = "rsa"
	ECDSA Algorithm = "ecdsa"
)

const (
	// rsaBits is the size of RSA keys, the same as in kubeadm. Gardener's keys have 3072 bits and take four times as
	// long to generate: with many concurrent requests, some would not get a key before their client times out.
	rsaBits = 2048
	// readyKeys is the maximum number of keys that are generated in advance.
	readyKeys = 4
	// fillDelay is the delay after the start before keys are generated in advance, so that this does not slow the start.
	fillDelay = 10 * time.Second
	// keyTimeout is how long a request waits for a key. It is less than the usual timeouts of clients, so that they are
	// told to try again.
	keyTimeout = 10 * time.Second
	// retryAfterSeconds is the time after which a client is told to try again. client-go retries ten times.
	retryAfterSeconds = 2
)

// privateKey is a new key, and its PEM form.
type privateKey struct {
	crypto.Signer
	pem []byte
}

// generate makes a key. An RSA key is a PKCS #1 "RSA PRIVATE KEY", as in Gardener's kubeconfigs.
func (a Algorithm) generate() (privateKey, error) {
	var key crypto.Signer
	var err error
	if a == ECDSA {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		key, err = rsa.GenerateKey(rand.Reader, rsaBits)
	}
	if err != nil {
		return privateKey{}, fmt.Errorf("generating a private key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return privateKey{}, fmt.Errorf("encoding a private key: %w", err)
	}
	return privateKey{key, keyPEM}, nil
}

// keyPool gives each request its own private key. It generates a few keys in advance and keeps them only in memory.
type keyPool struct {
	generate func() (privateKey, error)
	ready    chan privateKey
	// generating limits the number of requests that generate a key at a time: together with the pool itself, one for
	// each processor.
	generating chan struct{}

	cancel  context.CancelFunc
	stopped chan struct{}
}

// newKeyPool starts a pool, which runs until it is stopped.
func newKeyPool(generate func() (privateKey, error)) *keyPool {
	ctx, cancel := context.WithCancel(context.Background())
	p := &keyPool{
		generate:   generate,
		ready:      make(chan privateKey, readyKeys),
		generating: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		cancel:     cancel,
		stopped:    make(chan struct{}),
	}
	go p.fill(ctx)
	return p
}

// stop ends the pool and waits for it. Requests still get keys, which are generated for them.
func (p *keyPool) stop() {
	p.cancel()
	<-p.stopped
}

// fill keeps keys ready until the context ends.
func (p *keyPool) fill(ctx context.Context) {
	defer close(p.stopped)
	select {
	case <-time.After(fillDelay):
	case <-ctx.Done():
		return
	}
	for {
		key, err := p.generate()
		if err != nil {
			klog.FromContext(ctx).Error(err, "No private keys are made ahead for kubeconfigs any more")
			return
		}
		select {
		case p.ready <- key:
		case <-ctx.Done():
			return
		}
	}
}

// take returns a key of the pool, or generates one if none is ready. Concurrent requests wait in the order in which
// they arrive; a request that waits longer than keyTimeout is told to try again.
func (p *keyPool) take(ctx context.Context) (privateKey, error) {
	select {
	case key := <-p.ready:
		return key, nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	select {
	case key := <-p.ready:
		return key, nil
	case p.generating <- struct{}{}:
		defer func() { <-p.generating }()
		return p.generate()
	case <-ctx.Done():
		return privateKey{}, apierrors.NewTooManyRequests(
			"too many kubeconfigs are requested at once: no private key was ready in time", retryAfterSeconds)
	}
}
