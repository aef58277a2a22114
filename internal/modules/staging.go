//go:build staging_modules

package modules

// k8s.io/kubernetes requires its staging modules at v0.0.0, which cannot be downloaded. "go mod tidy" of a consumer looks
// for these as well, though no package of gardenlite imports them. The build tag is never set: "go mod tidy" counts the
// imports of every file whatever its tags.
import (
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "k8s.io/code-generator"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1"
	_ "k8s.io/cri-client/pkg"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/sample-apiserver/pkg/apiserver"
)
