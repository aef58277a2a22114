//go:build dependencies

package suites

// The tests import these programs. "go mod tidy" keeps what they need because of this file.
import (
	_ "github.com/gardener/gardener/cmd/gardener-controller-manager/app"
	_ "github.com/gardener/gardener/cmd/gardener-operator/app"
	_ "github.com/gardener/gardener/cmd/gardener-scheduler/app"
	_ "github.com/gardener/gardener/cmd/gardenlet/app"
	_ "github.com/gardener/gardener/test/envtest"
	_ "github.com/gardener/gardener/test/framework"
	_ "helm.sh/helm/v4/cmd/helm"
)
