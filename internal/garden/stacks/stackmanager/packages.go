package stackmanager

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

// packages caches the packages of the installs, so that they are pulled once and not in every reconciliation.
type packages struct {
	options stackpackage.Options
	mu      sync.Mutex
	read    map[types.UID]readPackage
}

type readPackage struct {
	reference string
	*stackpackage.Package
}

func newPackages(options stackpackage.Options) *packages {
	return &packages{options: options, read: map[types.UID]readPackage{}}
}

// of returns the package of an install. An installed package of a registry is read by its digest while the reference is
// unchanged: a tag that moves does not cause an upgrade.
func (p *packages) of(ctx context.Context, install v1alpha1.Install) (*stackpackage.Package, error) {
	reference := install.Request().Reference()
	p.mu.Lock()
	known, ok := p.read[install.GetUID()]
	p.mu.Unlock()
	if ok && known.reference == reference {
		return known.Package, nil
	}
	state := install.State()
	pinned := reference
	if state.Package == reference && state.Digest != "" && !strings.HasPrefix(reference, stackpackage.FileScheme) {
		pinned = byDigest(reference, state.Digest)
	}
	read, err := stackpackage.Open(ctx, pinned, p.options)
	if err != nil {
		return nil, err
	}
	if read.Digest == "" { // a folder or an archive of docker save
		data, err := json.Marshal(read)
		if err != nil {
			return nil, err
		}
		read.Digest = fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read[install.GetUID()] = readPackage{reference, read}
	return read, nil
}

// uses reports whether the package of an install owns a CRD or depends on it. It returns true if the package has not
// been read.
func (p *packages) uses(uid types.UID, crd string) bool {
	p.mu.Lock()
	known, ok := p.read[uid]
	p.mu.Unlock()
	return !ok || slices.Contains(known.DependsOn, crd) || known.Owns(crd)
}

func (p *packages) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.read, uid)
}

// byDigest returns the reference with the digest instead of its tag.
func byDigest(reference, digest string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndex(reference, ":"); colon > strings.LastIndex(reference, "/") {
		reference = reference[:colon]
	}
	return reference + "@" + digest
}
