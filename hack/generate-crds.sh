#!/usr/bin/env bash
# Generates the CustomResourceDefinitions of a seed from the Go types of their API modules, whose versions stand in
# hack/crds/go.mod, as does the generator's. Needs nothing but Go.
set -euo pipefail
cd "$(dirname "$0")/.."

out=manifests/seed/crds
main=$(go list -m -f '{{.Version}}' github.com/gardener/gardener/pkg/apis)
here=$(cd hack/crds && go list -m -f '{{.Version}}' github.com/gardener/gardener/pkg/apis)
if [ "$main" != "$here" ]; then
  echo "go.mod has the Gardener API of $main, hack/crds/go.mod that of $here:" \
    "run 'go get github.com/gardener/gardener/pkg/apis@$main' in hack/crds" >&2
  exit 1
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(
  cd hack/crds
  go tool controller-gen crd \
    paths=github.com/gardener/gardener/pkg/apis/extensions/v1alpha1 \
    paths=github.com/gardener/gardener/pkg/apis/resources/v1alpha1 \
    paths=github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1 \
    output:crd:dir="$tmp"
)

mkdir -p "$out"
rm -f "$out"/zz_generated.*.yaml
# The label is Gardener's, for definitions that must not go while there are objects of theirs.
for file in "$tmp"/*.yaml; do
  awk '{ print } !done && /^metadata:$/ { print "  labels:\n    gardener.cloud/deletion-protected: \"true\""; done = 1 }' \
    "$file" > "$out/zz_generated.$(basename "$file")"
done
