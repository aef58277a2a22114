// Package modules keeps the versions of Kubernetes' staging modules in go.mod, so that a module that imports
// pkg/testenv needs no replace directive. It is never built into a binary.
package modules
