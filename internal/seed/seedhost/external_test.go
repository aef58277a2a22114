//go:build soak

package seedhost

import (
	"testing"

	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
)

// TestDatastoresSeedClusterOfSameName is TestSeedClusterOfSameName with etcd.
func TestDatastoresSeedClusterOfSameName(t *testing.T) {
	testSeedClusterOfSameName(t, datastoretest.StartEtcd(t))
}
