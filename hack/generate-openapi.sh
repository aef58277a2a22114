#!/usr/bin/env bash
# Generates the OpenAPI definitions of the Gardener API groups, and of the Kubernetes types they refer to: without those,
# openapi-gen refers to them by their Go names, which are not the models' names.
# Needs nothing but Go and the modules of go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."

out=internal/garden/apiserver/openapi
gardener=github.com/gardener/gardener/pkg/apis
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

go tool openapi-gen \
  --output-pkg github.com/gardenlite/gardenlite/$out \
  --output-dir "$tmp" \
  --output-file zz_generated.openapi.go \
  --go-header-file hack/boilerplate.go.txt \
  --report-filename "$tmp/violations.txt" \
  $gardener/core/v1 \
  $gardener/core/v1beta1 \
  $gardener/operations/v1alpha1 \
  $gardener/security/v1alpha1 \
  $gardener/seedmanagement/v1alpha1 \
  $gardener/authentication/v1alpha1 \
  k8s.io/api/autoscaling/v1 \
  k8s.io/api/core/v1 \
  k8s.io/api/networking/v1 \
  k8s.io/api/rbac/v1 \
  k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 \
  k8s.io/apimachinery/pkg/api/resource \
  k8s.io/apimachinery/pkg/apis/meta/v1 \
  k8s.io/apimachinery/pkg/runtime \
  k8s.io/apimachinery/pkg/types \
  k8s.io/apimachinery/pkg/util/intstr \
  k8s.io/apimachinery/pkg/version \
  k8s.io/component-base/config/v1alpha1
mv "$tmp/zz_generated.openapi.go" "$out/zz_generated.openapi.go"
