package controlplane

import (
	"net/http"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	openapicommon "k8s.io/kube-openapi/pkg/common"
)

const openAPIV2Path = "/openapi/v2"

// serveOpenAPIV2 serves a server's OpenAPI v2 document, which is made when somebody asks for it the first time. To make
// it takes about a third of a start, and it stays in memory; few clients ask for it, since there is version 3. The server
// must have been configured without it.
func serveOpenAPIV2(server *genericapiserver.GenericAPIServer, config *openapicommon.Config) {
	document := sync.OnceValue(func() http.Handler {
		paths := mux.NewPathRecorderMux("openapi-v2")
		routes.OpenAPI{Config: config}.InstallV2(server.Handler.GoRestfulContainer, paths)
		return paths
	})
	server.Handler.NonGoRestfulMux.HandleFunc(openAPIV2Path, func(w http.ResponseWriter, r *http.Request) {
		document().ServeHTTP(w, r)
	})
}
