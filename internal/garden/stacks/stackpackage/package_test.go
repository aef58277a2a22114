package stackpackage

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
)

func TestReadEveryFeature(t *testing.T) {
	group := "resources/storage.example.org/"
	p, err := Read(valid(map[string]string{
		appFile: `title: Buckets
overviewShort: short
overview: long
readme: read it
version: 1.2.3
maintainers: [{name: Jane, email: jane@example.org}]
owners: [{name: Joe, email: joe@example.org}]
company: Example
category: Storage
keywords: [bucket, storage]
website: https://example.org
source: https://example.org/git
license: Apache-2.0
permissionScope: Cluster
dependsOn:
- crd: mysqlinstances.database.example.org/v1alpha1
- crd: mysqlinstances.database.example.org
- package: example.org/other:1
`,
		"icon.svg":         "<svg/>",
		group + "icon.png": "png",
		group + "group.yaml": "title: Storage\ncategory: Data\noverview: group long\n" +
			"overviewShort: group short\nreadme: group readme\n",
		group + "bucket/icon.jpg": "jpg",
		group + "bucket/resource.yaml": "id: bucket\ntitle: Bucket\ntitlePlural: Buckets\ncategory: C\n" +
			"overview: o\noverviewShort: s\nreadme: r\n",
		group + "bucket/v1alpha1/other.resource.yaml":   "id: Other\ntitle: Not this\n",
		group + "bucket/v1alpha1/bucket.ui-schema.yaml": "uiSpec: mine\n",
		group + "ui-schema.yaml":                        "uiSpec: group\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.DependsOn, []string{"mysqlinstances.database.example.org"}) || p.App.PermissionScope != ClusterScope ||
		len(p.App.Icons) != 1 ||
		p.App.Icons[0].MediaType != "image/svg+xml" || p.App.Maintainers[0].Email != "jane@example.org" {
		t.Errorf("%+v", p.App)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "example.org/other:1") {
		t.Errorf("warnings %q", p.Warnings)
	}
	got := p.CRDs[0]
	want := map[string]string{
		"icon-data-uri": "data:image/jpeg;base64,anBn", "ui-schema": "uiSpec: mine\n", "stack-title": "Buckets",
		"group-title": "Storage", "group-category": "Data", "group-overview": "group long", "group-overview-short": "group short",
		"group-readme":   "group readme",
		"resource-title": "Bucket", "resource-title-plural": "Buckets", "resource-category": "C", "resource-overview": "o",
		"resource-overview-short": "s", "resource-readme": "r",
	}
	for key, value := range want {
		if got.Annotations["stacks.crossplane.io/"+key] != value {
			t.Errorf("%s: %q", key, got.Annotations["stacks.crossplane.io/"+key])
		}
	}
	if len(got.Annotations) != len(want) || !maps.Equal(got.Labels, map[string]string{ManagedByLabel: ManagedBy}) || len(got.Finalizers) > 0 {
		t.Errorf("the CRD keeps metadata of the package: %+v", got.ObjectMeta)
	}
	if p.Deployment == nil || p.Job != nil || p.Deployment.Name != "bucket-controller" ||
		p.Deployment.Spec.Template.Spec.Containers[0].Image == "" {
		t.Errorf("%+v", p.Deployment)
	}
}

func TestReadControllers(t *testing.T) {
	p, err := Read(valid(map[string]string{installFile: controllerJob}))
	if err != nil || p.Job == nil || p.Job.Name != "bucket-setup" || p.Deployment != nil {
		t.Errorf("a Job: %+v, %v", p, err)
	}
	p, err = Read(valid(map[string]string{installFile: "-"}))
	if err != nil || p.Job != nil || p.Deployment != nil || len(p.Warnings) != 1 {
		t.Errorf("no controller: %+v, %v", p, err)
	}
}

const oldCRD = `

---
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  creationTimestamp: null
  name: buckets.storage.example.org
spec:
  additionalPrinterColumns: [{JSONPath: .status.state, name: STATE, type: string}]
  group: storage.example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  subresources: {status: {}}
  validation:
    openAPIV3Schema:
      properties:
        apiVersion: {type: string}
        kind: {type: string}
        metadata: {type: object}
        spec: {properties: {size: {type: integer}}, type: object}
  version: v1alpha1
  versions: [{name: v1alpha1, served: true, storage: true}]
status:
  acceptedNames: {kind: "", plural: ""}
  conditions: []
  storedVersions: []
`

func TestReadOldCRD(t *testing.T) {
	p, err := Read(valid(map[string]string{crdPath: oldCRD}))
	if err != nil {
		t.Fatal(err)
	}
	version := p.CRDs[0].Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	if schema.Type != "object" || schema.Properties["spec"].Properties["size"].Type != "integer" || version.Subresources.Status == nil ||
		version.AdditionalPrinterColumns[0].JSONPath != ".status.state" || p.CRDs[0].Spec.PreserveUnknownFields ||
		p.CRDs[0].APIVersion != "apiextensions.k8s.io/v1" {
		t.Errorf("%+v", p.CRDs[0])
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "dropped") {
		t.Errorf("warnings %q", p.Warnings)
	}

	p, err = Read(valid(map[string]string{
		crdPath: replace(oldCRD, "{properties: {size: {type: integer}}, type: object}", "{properties: {size: {type: integer}}}")}))
	if err != nil {
		t.Fatal(err)
	}
	schema = p.CRDs[0].Spec.Versions[0].Schema.OpenAPIV3Schema
	if schema.XPreserveUnknownFields == nil || !*schema.XPreserveUnknownFields || len(schema.Properties) > 0 {
		t.Errorf("%+v", schema)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "not structural") { // and nothing is dropped
		t.Errorf("warnings %q", p.Warnings)
	}
}

// TestReadIsStable checks that the same files result in the same package.
func TestReadIsStable(t *testing.T) {
	first, err := Read(valid(nil))
	if err != nil {
		t.Fatal(err)
	}
	second, err := Read(valid(nil))
	if err != nil || !equality.Semantic.DeepEqual(first, second) {
		t.Errorf("%+v, %v", second, err)
	}
}
