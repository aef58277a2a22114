package stackpackage

import (
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Scope is the scope of a stack's permissions (Stacks security and isolation, "Stack Package Author").
type Scope string

// These are the possible scopes.
const (
	ClusterScope   Scope = "Cluster"
	NamespaceScope Scope = "Namespaced"
)

// Package is a package that has passed every check.
type Package struct {
	App App
	// CRDs are the CRDs that the stack owns, sorted by name, as they are created: their labels and annotations are
	// those of the Stack Manager, without any from the package.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Deployment or Job is the optional controller. It has neither a namespace nor a ServiceAccount: the Stack
	// determines both.
	Deployment *appsv1.Deployment
	Job        *batchv1.Job
	// DependsOn are the names of the CRDs that the stack uses, PLURAL.GROUP, without duplicates. The installation
	// checks that they exist and are namespaced.
	DependsOn []string
	// Warnings describe deviations from the content of the package.
	Warnings []string
	// Digest is the digest of the image's manifest, sha256:…; empty for a plain folder and an archive of docker save.
	Digest string
}

// Owns reports whether the stack owns a CRD.
func (p *Package) Owns(crd string) bool {
	return slices.ContainsFunc(p.CRDs, func(own *apiextensionsv1.CustomResourceDefinition) bool { return own.Name == crd })
}

// App is the content of app.yaml. It is also a part of the Stack's spec.
type App struct {
	Title           string        `json:"title,omitempty"`
	OverviewShort   string        `json:"overviewShort,omitempty"`
	Overview        string        `json:"overview,omitempty"`
	Readme          string        `json:"readme,omitempty"`
	Version         string        `json:"version,omitempty"`
	Icons           []Icon        `json:"icons,omitempty"`
	Maintainers     []Contributor `json:"maintainers,omitempty"`
	Owners          []Contributor `json:"owners,omitempty"`
	Company         string        `json:"company,omitempty"`
	Category        string        `json:"category,omitempty"`
	Keywords        []string      `json:"keywords,omitempty"`
	Website         string        `json:"website,omitempty"`
	Source          string        `json:"source,omitempty"`
	License         string        `json:"license,omitempty"`
	DependsOn       []Dependency  `json:"dependsOn,omitempty"`
	PermissionScope Scope         `json:"permissionScope,omitempty"`
	// PackageType is in packages of later versions of Crossplane, and is left aside.
	PackageType string `json:"packageType,omitempty"`
}

// Icon is an image in base64.
type Icon struct {
	Base64Data string `json:"base64Data"`
	MediaType  string `json:"mediatype"`
}

// Contributor is a person who maintains or owns a stack.
type Contributor struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// Dependency is a CRD, or a package, that a stack needs. Only CRD grants permissions.
type Dependency struct {
	Source  string `json:"source,omitempty"`
	Package string `json:"package,omitempty"`
	CRD     string `json:"crd,omitempty"`
}

// These are the names of the files of a package.
const (
	appFile      = "app.yaml"
	installFile  = "install.yaml"
	rbacFile     = "rbac.yaml"
	behaviorFile = "behavior.yaml"
	groupFile    = "group.yaml"
	uiFile       = "ui-schema.yaml"
	crdFile      = "crd.yaml"
	resourcesDir = "resources/"
	resourceFile = "resource.yaml"
)

// maxIconBytes leaves room for the other annotations of a CRD, whose total size is limited to 256 KiB.
const maxIconBytes = 128 << 10

// iconTypes are the media types of icons by file extension. If a folder has several icons, the first type is used.
var iconTypes = []struct{ ending, mediaType string }{
	{".svg", "image/svg+xml"}, {".png", "image/png"}, {".jpg", "image/jpeg"}, {".jpeg", "image/jpeg"}, {".gif", "image/gif"},
}

// filePath matches the allowed paths: without spaces, control characters, and letters that look like other letters.
var filePath = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)

// Read parses and checks the files of a package. The error has all reasons for which the package is refused.
func Read(files Files) (*Package, error) {
	p := &Package{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		errs = append(errs, checkFile(name, files[name]))
	}
	if _, ok := files[behaviorFile]; ok {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%s is left aside: templates are not supported, so that nothing acts on instances "+
				"of the CRDs but the controller of %s", behaviorFile, installFile))
	}
	errs = append(errs, p.readApp(files), p.readDependencies(), p.readController(files), p.readCRDs(files))
	if err := refusalOf(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// appKeys are the keys of app.yaml.
var appKeys = []string{"title", "overviewShort", "overview", "readme", "version", "icons", "maintainers", "owners",
	"company",
	"category", "keywords", "website", "source", "license", "dependsOn", "permissionScope", "packageType"}

func (p *Package) readApp(files Files) error {
	data, ok := files[appFile]
	if !ok {
		return fmt.Errorf("there is no %s", appFile)
	}
	var keys map[string]any
	if err := decode(appFile, data, &keys); err != nil {
		return err
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(appKeys, key) {
			errs = append(errs, fmt.Errorf("%s: unknown field %q: remove it", appFile, shorten(key)))
		}
	}
	if err := decode(appFile, data, &p.App); len(errs) == 0 { // which names an unknown key, too
		errs = append(errs, err)
	}
	if p.App.PackageType != "" {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%s: packageType %s is left aside: the permissionScope says what a stack may do",
				appFile, shorten(p.App.PackageType)))
		p.App.PackageType = ""
	}
	if strings.TrimSpace(p.App.Title) == "" {
		errs = append(errs, fmt.Errorf("%s has no title: it is the name of the stack, by which its versions belong together",
			appFile))
	}
	switch p.App.PermissionScope {
	case ClusterScope, NamespaceScope:
	case "":
		errs = append(errs,
			fmt.Errorf("%s has no permissionScope: it must be %s, if the controller works in all namespaces, or %s, "+
				"if it works in its own", appFile, ClusterScope, NamespaceScope))
	default:
		errs = append(errs, fmt.Errorf("%s has permissionScope %q: it must be %s or %s", appFile,
			shorten(string(p.App.PermissionScope)), ClusterScope, NamespaceScope))
	}
	if icon, ok := findIcon(files, "", ""); ok {
		p.App.Icons = append(p.App.Icons, icon)
	}
	return errors.Join(errs...)
}

// checkFile refuses a file that does not belong to a package.
func checkFile(name string, data []byte) error {
	base := path.Base(name)
	switch inResources := strings.HasPrefix(name, resourcesDir); {
	case len(name) > maxPath || !filePath.MatchString(name) || slices.Contains(strings.Split(name, "/"), ".."):
		return fmt.Errorf("the path %q is not allowed: letters, digits, dots, hyphens and underscores are", shorten(name))
	case base == rbacFile:
		return fmt.Errorf("%s is not allowed: the permissions of a stack are implicit, they follow from its CRDs and dependsOn: remove the file", name)
	case isIcon(base) && (inResources || strings.HasPrefix(name, "icon.")):
		if len(data) > maxIconBytes {
			return fmt.Errorf("the icon %s has %d bytes, %d are allowed", name, len(data), maxIconBytes)
		}
		return nil
	case name == appFile, name == installFile, name == uiFile, name == behaviorFile:
		return nil
	case inResources && (base == groupFile || isOf(base, crdFile) || isOf(base, resourceFile) || isOf(base, uiFile)):
		return nil
	}
	return fmt.Errorf("%s is no file of a package: %s, %s, %s, icon.* and, below %s, %s, *%s, *%s, *%s and *icon.* are",
		name, appFile, installFile, uiFile, resourcesDir, groupFile, crdFile, resourceFile, uiFile)
}

// isOf reports whether a file is of a kind, with or without the name of its resource as a prefix.
func isOf(base, kind string) bool { return strings.HasSuffix(base, kind) }

func isIcon(base string) bool {
	return slices.ContainsFunc(iconTypes, func(t struct{ ending, mediaType string }) bool { return isOf(base, "icon"+t.ending) })
}

// readDependencies refuses CRDs to which no stack may have access. A dependency grants the same permissions as an owned
// CRD.
func (p *Package) readDependencies() error {
	var errs []error
	for _, dependency := range p.App.DependsOn {
		if dependency.CRD == "" {
			p.Warnings = append(p.Warnings, fmt.Sprintf("dependsOn of the package %q grants nothing: only crd does", shorten(dependency.Package)))
			continue
		}
		name, _, _ := strings.Cut(dependency.CRD, "/")
		plural, group, _ := strings.Cut(name, ".")
		err := checkCRDName(plural, group)
		if err != nil && strings.Contains(name, "*") {
			err = fmt.Errorf("%w; instead of a wildcard, name each CRD that the controller uses", err)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: dependsOn %q is not allowed: %w", appFile, shorten(dependency.CRD), err))
			continue
		}
		p.DependsOn = append(p.DependsOn, name)
	}
	slices.Sort(p.DependsOn)
	p.DependsOn = slices.Compact(p.DependsOn)
	return errors.Join(errs...)
}

// reservedGroups are the API groups of Kubernetes, of Gardener and of what else runs in a landscape; their subdomains
// are reserved as well, and so are all groups that end in k8s.io. The policies of the Stack Manager have them, too.
var reservedGroups = []string{"k8s.io", "x-k8s.io", "kubernetes.io", "gardener.cloud", "gardenlite.dev",
	"stacks.crossplane.io",
	"sapcloud.io", "coreos.com"}

// checkCRDName refuses names and groups that a custom resource of a stack cannot have.
func checkCRDName(plural, group string) error {
	switch {
	case len(validation.IsDNS1035Label(plural)) > 0:
		return errors.New("the plural must be a name of lower case letters, digits and hyphens")
	case !strings.Contains(group, "."):
		return errors.New("it must be PLURAL.GROUP, and groups without a dot are built into Kubernetes")
	case len(validation.IsDNS1123Subdomain(group)) > 0:
		return errors.New("the group must be a DNS name in lower case letters")
	}
	switch reserved := domainOf(group, reservedGroups); {
	case reserved == "":
	case strings.HasSuffix(group, ".stacks.crossplane.io"):
		return fmt.Errorf("%s and the groups below it are not those of a stack: that samples have groups below it is not supported, "+
			"choose a domain of your own", reserved)
	default:
		return fmt.Errorf("%s and the groups below it are not those of a stack", reserved)
	}
	if strings.HasSuffix(group, "k8s.io") {
		return errors.New("groups that end in k8s.io are not those of a stack")
	}
	return nil
}

// IsReservedGroup reports whether an API group is one of Kubernetes, Gardener or what else runs in a landscape.
func IsReservedGroup(group string) bool {
	return !strings.Contains(group, ".") || domainOf(group, reservedGroups) != "" || strings.HasSuffix(group, "k8s.io")
}

// domainOf returns the first of the domains that equals the name or is a parent of it, and "" if there is none.
func domainOf(name string, domains []string) string {
	i := slices.IndexFunc(domains, func(domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) })
	if i < 0 {
		return ""
	}
	return domains[i]
}

// findIcon returns the icon in a folder, or the nearest one above it. An icon with the kind as a prefix is preferred.
func findIcon(files Files, folder, kind string) (Icon, bool) {
	for prefix := range nearest(folder, kind) {
		for _, t := range iconTypes {
			if data, ok := files[prefix+"icon"+t.ending]; ok {
				return Icon{base64.StdEncoding.EncodeToString(data), t.mediaType}, true
			}
		}
	}
	return Icon{}, false
}

// nearest returns what may precede the name of a file for a resource of the kind, the nearest first: its folder and those
// above it, each with the kind as a prefix and without.
func nearest(folder, kind string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, dir := range withParents(folder) {
			if kind != "" && !yield(dir+strings.ToLower(kind)+".") || !yield(dir) {
				return
			}
		}
	}
}

// withParents returns a folder and those above it up to the package itself, which is "". All others have a trailing slash.
func withParents(folder string) (all []string) {
	for folder = strings.TrimSuffix(folder, "/"); folder != "" && folder != "."; folder = path.Dir(folder) {
		all = append(all, folder+"/")
	}
	return append(all, "")
}
