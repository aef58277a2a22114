package quirks

import (
	"reflect"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
)

// ReloadProxyCertificate is the hook with which the aggregator watches its client certificate.
const ReloadProxyCertificate = "aggregator-reload-proxy-client-cert"

// ReplaceHook replaces a post-start hook of a server. The aggregator's hook for its client certificate takes a watcher
// of files for each server, and there is no option for another. If another version keeps hooks elsewhere, or has none
// of the name, ReplaceHook does nothing.
//
// Upstream: NewWithDelegate in
// https://github.com/kubernetes/kubernetes/blob/v1.36.4/staging/src/k8s.io/kube-aggregator/pkg/apiserver/apiserver.go
func ReplaceHook(server *genericapiserver.GenericAPIServer, name string,
	with func(genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc) {
	hooks := reflect.ValueOf(server.PostStartHooks())
	entry := hooks.MapIndex(reflect.ValueOf(name))
	if !entry.IsValid() || entry.Kind() != reflect.Struct {
		return
	}
	changed := reflect.New(entry.Type()).Elem()
	changed.Set(entry)
	if hook := fieldOf[genericapiserver.PostStartHookFunc](changed, "hook"); hook != nil {
		*hook = with(*hook)
		hooks.SetMapIndex(reflect.ValueOf(name), changed)
	}
}

// ReplaceReloader replaces what reloads the authority of a signer: it takes a watcher of files for each signer, and
// there is no option for another. If another version keeps it elsewhere, ReplaceReloader does nothing.
//
// Upstream: NewCSRSigningController in
// https://github.com/kubernetes/kubernetes/blob/v1.36.4/pkg/controller/certificates/signer/signer.go
func ReplaceReloader(s *signer.CSRSigningController,
	with func(dynamiccertificates.ControllerRunner) dynamiccertificates.ControllerRunner) {
	reloader := fieldOf[dynamiccertificates.ControllerRunner](reflect.ValueOf(s).Elem(), "dynamicCertReloader")
	if reloader != nil {
		*reloader = with(*reloader)
	}
}

// fieldOf returns a pointer to a field of an addressable struct, nil if it has none of the name and type.
func fieldOf[T any](object reflect.Value, name string) *T {
	field := object.FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(field.Addr().UnsafePointer())
}
