package stackpackage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The CRDs of stacks have this label and annotations with this prefix, as in Crossplane v0.4.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "stack-manager"
	annotation     = "stacks.crossplane.io/"
)

var crdScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

func (p *Package) readCRDs(files Files) error {
	about, err := readMetadata(files)
	errs := []error{err}
	from, rules := map[string]string{}, 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !isOf(path.Base(name), crdFile) {
			continue
		}
		crd, warnings, err := readCRD(name, files[name], &rules)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, ok := from[crd.Name]; ok {
			errs = append(errs, fmt.Errorf("%s and %s have the same CRD %s", other, name, crd.Name))
			continue
		}
		from[crd.Name] = name
		crd.Annotations = p.annotations(files, about, path.Dir(name), crd.Spec.Names.Kind)
		errs = append(errs, prefixed(name+": ", validateCRD(crd)))
		p.CRDs = append(p.CRDs, crd)
		p.Warnings = append(p.Warnings, warnings...)
	}
	slices.SortFunc(p.CRDs, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return errors.Join(errs...)
}

// readCRD reads a CRD of either API version. Of the metadata, it takes only the name.
func readCRD(name string, data []byte, rules *int) (*apiextensionsv1.CustomResourceDefinition, []string, error) {
	var meta map[string]any
	if err := decode(name, data, &meta); err != nil {
		return nil, nil, err
	}
	if *rules += countRules(meta); *rules > maxRules {
		return nil, nil, fmt.Errorf("%s: the CRDs have more than %d rules (x-kubernetes-validations)", name, maxRules)
	}
	if meta["kind"] != "CustomResourceDefinition" {
		return nil, nil, fmt.Errorf("%s is no CustomResourceDefinition", name)
	}
	crd, isOld := &apiextensionsv1.CustomResourceDefinition{}, false
	switch meta["apiVersion"] {
	case apiextensionsv1.SchemeGroupVersion.String():
		if err := decode(name, data, crd); err != nil {
			return nil, nil, err
		}
	case v1beta1.SchemeGroupVersion.String():
		old := &v1beta1.CustomResourceDefinition{}
		if err := decode(name, data, old); err != nil {
			return nil, nil, err
		}
		if err := convertCRD(old, crd); err != nil {
			return nil, nil, fmt.Errorf("converting %s: %w", name, err)
		}
		isOld = true
	default:
		return nil, nil, fmt.Errorf("%s has apiVersion %v: %s or %s is expected", name, meta["apiVersion"],
			apiextensionsv1.SchemeGroupVersion, v1beta1.SchemeGroupVersion)
	}
	crd = &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: map[string]string{ManagedByLabel: ManagedBy}},
		Spec:       crd.Spec,
	}
	if err := checkCRD(crd); err != nil {
		return nil, nil, prefixed(fmt.Sprintf("%s: CRD %s: ", name, shorten(crd.Name)), err)
	}
	var warnings []string
	if isOld {
		warnings = makeStructural(crd)
	}
	return crd, warnings, nil
}

// maxRules is the maximum number of rules of all CRDs: each takes 60 kB of memory when it is compiled.
const maxRules = 1000

func countRules(value any) (rules int) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			rules += countRules(item)
		}
	case map[string]any:
		for key, item := range v {
			if list, ok := item.([]any); ok && strings.EqualFold(key, "x-kubernetes-validations") {
				rules += len(list)
			}
			rules += countRules(item)
		}
	}
	return rules
}

func convertCRD(old *v1beta1.CustomResourceDefinition, into *apiextensionsv1.CustomResourceDefinition) error {
	crdScheme.Default(old)
	var internal apiextensions.CustomResourceDefinition
	if err := crdScheme.Convert(old, &internal, nil); err != nil {
		return err
	}
	return crdScheme.Convert(&internal, into, nil)
}

// checkCRD refuses CRDs that a stack must not own.
func checkCRD(crd *apiextensionsv1.CustomResourceDefinition) error {
	spec := &crd.Spec
	errs := []error{checkCRDName(spec.Names.Plural, spec.Group)}
	if crd.Name != spec.Names.Plural+"."+spec.Group {
		errs = append(errs, fmt.Errorf("its name must be its plural and its group, %s.%s", spec.Names.Plural, spec.Group))
	}
	if spec.Scope != apiextensionsv1.NamespaceScoped {
		errs = append(errs, errors.New("its scope must be Namespaced: stacks have no access to cluster-scoped resources"))
	}
	if convertsByWebhook(spec.Conversion) {
		errs = append(errs, errors.New("it has a conversion webhook, which is not allowed"))
	}
	if len(spec.Versions) == 0 {
		errs = append(errs, errors.New("it has no version"))
	}
	for _, version := range spec.Versions {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			errs = append(errs, fmt.Errorf("version %s has no schema: describe its fields with spec.versions[].schema, "+
				"or in v1beta1 with spec.validation", shorten(version.Name)))
		}
	}
	return errors.Join(errs...)
}

func convertsByWebhook(conversion *apiextensionsv1.CustomResourceConversion) bool {
	if conversion == nil {
		return false
	}
	isNone := conversion.Strategy == apiextensionsv1.NoneConverter || conversion.Strategy == ""
	return !isNone || conversion.Webhook != nil
}

// makeStructural makes a CRD of v1beta1 valid in v1, which requires a structural schema and drops unknown fields. It
// replaces a schema that is not structural by one that accepts everything, and returns a warning.
func makeStructural(crd *apiextensionsv1.CustomResourceDefinition) (warnings []string) {
	preserves := crd.Spec.PreserveUnknownFields
	crd.Spec.PreserveUnknownFields = false
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		version.Schema.OpenAPIV3Schema.Type = cmp.Or(version.Schema.OpenAPIV3Schema.Type, "object")
		if err := structural(version.Schema.OpenAPIV3Schema); err != nil {
			preserve := true
			version.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
			warnings = append(warnings, fmt.Sprintf("CRD %s: the schema of version %s is not structural, so every field is accepted: %v",
				crd.Name, version.Name, err))
		}
	}
	if preserves && len(warnings) < len(crd.Spec.Versions) {
		warnings = append(warnings, fmt.Sprintf("CRD %s: fields that its schema does not have are dropped, as in apiextensions.k8s.io/v1",
			crd.Name))
	}
	return warnings
}

func structural(schema *apiextensionsv1.JSONSchemaProps) error {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &internal, nil); err != nil {
		return err
	}
	s, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return err
	}
	return structuralschema.ValidateStructural(nil, s).ToAggregate()
}

// validateCRD runs the validation of the API server, so that a CRD that the API server would refuse is refused before
// anything is installed.
func validateCRD(crd *apiextensionsv1.CustomResourceDefinition) error {
	candidate := crd.DeepCopy()
	crdScheme.Default(candidate)
	for _, version := range candidate.Spec.Versions {
		if version.Storage {
			candidate.Status.StoredVersions = []string{version.Name}
		}
	}
	var internal apiextensions.CustomResourceDefinition
	if err := crdScheme.Convert(candidate, &internal, nil); err != nil {
		return err
	}
	var errs []error
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// groupMetadata is the content of a group.yaml.
type groupMetadata struct {
	Title         string `json:"title,omitempty"`
	OverviewShort string `json:"overviewShort,omitempty"`
	Overview      string `json:"overview,omitempty"`
	Readme        string `json:"readme,omitempty"`
	Category      string `json:"category,omitempty"`
}

// resourceMetadata is the content of a resource.yaml.
type resourceMetadata struct {
	// ID is the kind of the CRD.
	ID          string `json:"id"`
	TitlePlural string `json:"titlePlural,omitempty"`

	groupMetadata `json:",inline"`
}

// metadata has the descriptions of groups and resources, by folder.
type metadata struct {
	groups    map[string]groupMetadata
	resources map[string][]resourceMetadata
}

func readMetadata(files Files) (metadata, error) {
	all := metadata{map[string]groupMetadata{}, map[string][]resourceMetadata{}}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		folder, base := path.Split(name)
		if base == groupFile {
			var group groupMetadata
			errs = append(errs, decode(name, files[name], &group))
			all.groups[folder] = group
		}
		if isOf(base, resourceFile) {
			var about resourceMetadata
			errs = append(errs, decode(name, files[name], &about))
			all.resources[folder] = append(all.resources[folder], about)
		}
	}
	return all, errors.Join(errs...)
}

// annotations returns the annotations of a CRD from the nearest files, in its folder or above it.
func (p *Package) annotations(files Files, about metadata, folder, kind string) map[string]string {
	all := map[string]string{}
	set := func(key, value string) {
		if value != "" {
			all[annotation+key] = value
		}
	}
	set("stack-title", p.App.Title)
	if icon, ok := findIcon(files, folder, kind); ok {
		set("icon-data-uri", "data:"+icon.MediaType+";base64,"+icon.Base64Data)
	}
	group, thing := about.group(folder), about.resource(folder, kind)
	for prefix, m := range map[string]groupMetadata{"group-": group, "resource-": thing.groupMetadata} {
		set(prefix+"title", m.Title)
		set(prefix+"category", m.Category)
		set(prefix+"readme", m.Readme)
		set(prefix+"overview", m.Overview)
		set(prefix+"overview-short", m.OverviewShort)
	}
	set("resource-title-plural", thing.TitlePlural)
	set("ui-schema", findUISchema(files, folder, kind))
	return all
}

func (m metadata) group(folder string) groupMetadata {
	for _, dir := range withParents(folder) {
		if group, ok := m.groups[dir]; ok {
			return group
		}
	}
	return groupMetadata{}
}

// resource returns the description of a kind that is nearest to the folder.
func (m metadata) resource(folder, kind string) resourceMetadata {
	for _, dir := range withParents(folder) {
		for _, about := range m.resources[dir] {
			if strings.EqualFold(about.ID, kind) {
				return about
			}
		}
	}
	return resourceMetadata{}
}

func findUISchema(files Files, folder, kind string) string {
	for prefix := range nearest(folder, kind) {
		if data, ok := files[prefix+uiFile]; ok {
			return string(data)
		}
	}
	return ""
}
