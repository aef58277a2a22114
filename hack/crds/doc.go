// Package crds ties the modules whose types the seed's CustomResourceDefinitions are generated from, and the generator,
// to their versions: hack/generate-crds.sh runs here. Nothing imports it.
package crds

import (
	_ "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	_ "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	_ "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)
