//go:build staging_modules

package baseline

// "go mod tidy" looks for these, which k8s.io/kubernetes requires at v0.0.0 (internal/modules of the main module says more).
import (
	_ "k8s.io/cri-client/pkg"
	_ "k8s.io/cri-streaming/pkg/streaming"
)
