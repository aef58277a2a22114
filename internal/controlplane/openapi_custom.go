package controlplane

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/klog/v2"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
)

// serveCustomOpenAPI serves the OpenAPI documents of custom resources. Kubernetes' controller for version 3 is not used:
// the whole process ends if the aggregator asks for its index while it adds the first resource of a group (the group is in
// the index of kube-openapi's handler3 before it has a document). The server must have been configured to skip them.
func serveCustomOpenAPI(server *apiextensionsapiserver.CustomResourceDefinitions, v2 *openapicommon.Config,
	v3 *openapicommon.OpenAPIV3Config) {
	generic := server.GenericAPIServer
	paths := generic.Handler.NonGoRestfulMux
	// Kubernetes' controller for version 2 updates this document.
	generic.OpenAPIVersionedService, generic.StaticOpenAPISpec =
		routes.OpenAPI{Config: v2}.InstallV2(generic.Handler.GoRestfulContainer, paths)
	crds := server.Informers.Apiextensions().V1().CustomResourceDefinitions().Lister()
	serveVersion3(paths, customDocuments(staticDocuments(generic, v3), crds))
}

// customDocuments returns the documents of custom resources besides static ones.
func customDocuments(static groupDocuments, lister listers.CustomResourceDefinitionLister) groupDocuments {
	var mu sync.Mutex
	var last map[schema.GroupVersion]groupDocument
	return func() map[string]groupDocument {
		mu.Lock()
		defer mu.Unlock()
		now := map[schema.GroupVersion]groupDocument{}
		documents := maps.Clone(static())
		for gv, crds := range servedResources(lister) {
			hash := hashOfResources(crds)
			document := last[gv]
			if document.hash != hash {
				document = groupDocument{hash: hash, Handler: onDemand(func(paths *mux.PathRecorderMux) {
					installCustomDocument(paths, gv, crds)
				})}
			}
			now[gv], documents[pathOf(gv)] = document, document
		}
		last = now
		return documents
	}
}

// pathOf returns the path of a group and version in the index.
func pathOf(gv schema.GroupVersion) string { return "apis/" + gv.String() }

// servedResources returns the definitions of the custom resources that are served, by group and version, and in the order
// of their names.
func servedResources(lister listers.CustomResourceDefinitionLister) map[schema.GroupVersion][]*apiextensionsv1.CustomResourceDefinition {
	all, err := lister.List(labels.Everything())
	if err != nil {
		return nil // a list from memory does not fail
	}
	slices.SortFunc(all, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	served := map[schema.GroupVersion][]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range all {
		if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			continue
		}
		for _, version := range crd.Spec.Versions {
			if version.Served {
				gv := schema.GroupVersion{Group: crd.Spec.Group, Version: version.Name}
				served[gv] = append(served[gv], crd)
			}
		}
	}
	return served
}

// hashOfResources changes with the definitions and with the program, which describes them.
func hashOfResources(crds []*apiextensionsv1.CustomResourceDefinition) string {
	var about strings.Builder
	about.WriteString(thisProgram())
	for _, crd := range crds {
		fmt.Fprintln(&about, crd.UID, crd.Generation)
	}
	return hashOf(about.String())
}

// installCustomDocument creates and installs the document of a group and version. A definition whose schema cannot be
// described is left out, as in Kubernetes.
func installCustomDocument(paths *mux.PathRecorderMux, gv schema.GroupVersion, crds []*apiextensionsv1.CustomResourceDefinition) {
	var documents []*spec3.OpenAPI
	for _, crd := range crds {
		document, err := builder.BuildOpenAPIV3(crd, gv.Version, builder.Options{IncludeSelectableFields: true})
		if err != nil {
			klog.ErrorS(err, "Cannot describe a custom resource", "crd", crd.Name, "version", gv.Version)
			continue
		}
		documents = append(documents, document)
	}
	merged, err := builder.MergeSpecsV3(documents...)
	if err != nil {
		klog.ErrorS(err, "Cannot describe a group of custom resources", "group", gv)
		return
	}
	service := handler3.NewOpenAPIService()
	service.UpdateGroupVersion(pathOf(gv), merged)
	service.RegisterOpenAPIV3VersionedService(openAPIV3Path, paths)
}
