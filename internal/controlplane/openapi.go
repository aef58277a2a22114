package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	openapiutil "k8s.io/kube-openapi/pkg/builder3/util"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// version3Models is the prefix of a reference to a model in OpenAPI version 3.
const version3Models = "#/components/schemas/"

// The paths of the OpenAPI documents.
const (
	openAPIV2Path = "/openapi/v2"
	openAPIV3Path = "/openapi/v3"
)

// serveOpenAPI serves a server's OpenAPI documents. Creating them takes more than half of a start, so each is created
// when a client requests it for the first time: version 3 by group and version, and version 2 as a whole, which the
// aggregator requests a second after the start. The server must have been configured to skip them.
func serveOpenAPI(server *genericapiserver.GenericAPIServer, v2 *openapicommon.Config, v3 *openapicommon.OpenAPIV3Config) {
	documents := server.Handler.NonGoRestfulMux
	documents.Handle(openAPIV2Path, onDemand(func(paths *mux.PathRecorderMux) {
		routes.OpenAPI{Config: v2}.InstallV2(server.Handler.GoRestfulContainer, paths)
	}))
	serveVersion3(documents, staticDocuments(server, v3))
}

// serveVersion3 serves the documents of version 3 and their index.
func serveVersion3(paths *mux.PathRecorderMux, documents groupDocuments) {
	version3 := &openAPIV3{documents}
	paths.HandleFunc(openAPIV3Path, version3.root)
	paths.HandlePrefix(openAPIV3Path+"/", http.HandlerFunc(version3.group))
}

// onDemand returns a handler that installs its content at the first request. Documents are created from models that all
// servers share, and so for one server at a time.
func onDemand(install func(*mux.PathRecorderMux)) http.Handler {
	handler := sync.OnceValue(func() http.Handler {
		building.Lock()
		defer building.Unlock()
		paths := mux.NewPathRecorderMux("openapi")
		install(paths)
		return paths
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler().ServeHTTP(w, r) })
}

// groupDocuments returns the documents of version 3 by the paths of their groups and versions, without the leading slash.
type groupDocuments func() map[string]groupDocument

// groupDocument serves the document of a group and version. The document of another hash is another one. The hash is not
// that of the document, which is not known before the document has been created.
type groupDocument struct {
	http.Handler
	hash string
}

// staticDocuments returns the documents of what a server serves from its start.
func staticDocuments(server *genericapiserver.GenericAPIServer, config *openapicommon.OpenAPIV3Config) groupDocuments {
	return sync.OnceValue(func() map[string]groupDocument {
		documents := map[string]groupDocument{}
		for _, service := range server.Handler.GoRestfulContainer.RegisteredWebServices() {
			documents[strings.TrimPrefix(service.RootPath(), "/")] = groupDocument{hash: thisProgram(), Handler: onDemand(
				func(paths *mux.PathRecorderMux) {
					alone := restful.NewContainer()
					alone.Add(service)
					routes.OpenAPI{V3Config: config}.InstallV3(alone, paths)
				})}
		}
		return documents
	})
}

// openAPIV3 serves the documents of version 3 and their index.
type openAPIV3 struct {
	documents groupDocuments
}

// root lists the documents. The aggregator requests it while the aggregator is being created, and then each second.
func (o *openAPIV3) root(w http.ResponseWriter, _ *http.Request) {
	index := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for group, document := range o.documents() {
		index.Paths[group] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: openAPIV3Path + "/" + group + "?hash=" + document.hash}
	}
	body, err := json.Marshal(index)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Etag", `"`+hashOf(string(body))+`"`)
	_, _ = w.Write(body) // an error means that the client is gone
}

func (o *openAPIV3) group(w http.ResponseWriter, r *http.Request) {
	document, found := o.documents()[strings.TrimPrefix(r.URL.Path, openAPIV3Path+"/")]
	if !found {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("hash") == document.hash {
		r = r.Clone(r.Context())
		r.URL.RawQuery = "" // the handler knows another hash
	}
	document.ServeHTTP(w, r)
}

// thisProgram identifies the build of this program: the documents of a build are always the same, and clients cache
// them by this hash.
var thisProgram = sync.OnceValue(func() string {
	about := "unknown"
	if path, err := os.Executable(); err == nil {
		if info, err := os.Stat(path); err == nil {
			about = fmt.Sprint(path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hashOf(about)
})

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// kubeDefinitions returns Kubernetes' models. They are equal in all servers of the process, and so large that the
// servers share them: one set for each form of references. Callers must not modify them.
func kubeDefinitions(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
	const any = "io.k8s.api.core.v1.Namespace"
	reference := ref(any)
	once, _ := definitionsByReference.LoadOrStore(reference.String(), sync.OnceValue(func() map[string]openapicommon.OpenAPIDefinition {
		definitions := generatedopenapi.GetOpenAPIDefinitions(ref)
		if strings.HasPrefix(reference.String(), version3Models) {
			wrapRefs(definitions)
		}
		return definitions
	}))
	return maps.Clone(once.(func() map[string]openapicommon.OpenAPIDefinition)())
}

var definitionsByReference sync.Map

// wrapRefs wraps the references in all models, as OpenAPI version 3 does with a copy of each model that it uses. Done
// in advance, no copies are needed.
func wrapRefs(definitions map[string]openapicommon.OpenAPIDefinition) {
	for name, definition := range definitions {
		definition.Schema = *openapiutil.WrapRefs(&definition.Schema)
		definitions[name] = definition
	}
}
