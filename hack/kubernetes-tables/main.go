// Command kubernetes-tables writes the tables of what kube-apiserver and its
// companions know in each supported minor version of Kubernetes: feature gates with
// the version in which they are locked, API groups and resources, admission plugins.
//
// It reads Kubernetes' own sources, which it gets with "go mod download": the
// reference list of feature gates, the informers of client-go and the registration of
// the admission plugins. Run it in the root of the repository, with the first release
// of each minor version, oldest first, so that nothing counts for a whole minor version
// that only came with a patch:
//
//	go run ./hack/kubernetes-tables 1.32.0 1.33.0 1.34.0 1.35.0 1.36.0
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

const output = "internal/garden/validation/corevalidation/zz_generated_kubernetes_tables.go"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: kubernetes-tables VERSION...")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(versions []string) error {
	var minors []string
	gates, apis, plugins := table{}, table{}, table{}
	for i, version := range versions {
		major, patchless, _ := strings.Cut(version, ".")
		minor, _, _ := strings.Cut(patchless, ".")
		release := release{version: version, minor: major + "." + minor, first: i == 0}
		minors = append(minors, release.minor)
		for _, step := range []struct {
			table table
			read  func() (map[string]lock, error)
		}{{gates, release.featureGates}, {apis, release.apis}, {plugins, release.admissionPlugins}} {
			known, err := step.read()
			if err != nil {
				return fmt.Errorf("read Kubernetes %s: %w", version, err)
			}
			step.table.add(release, known)
		}
	}
	return write(minors, gates, apis, plugins)
}

// ---- tables ----

// lock tells since which version something has a fixed value.
type lock struct {
	since string
	value bool
}

type entry struct {
	added, removed string
	lock           lock
}

type table map[string]*entry

// add records what a release knows, and that it no longer knows the rest.
func (t table) add(release release, known map[string]lock) {
	for name, lock := range known {
		if t[name] == nil {
			t[name] = &entry{}
			if !release.first {
				t[name].added = release.minor
			}
		}
		// The lock may be lifted again: the last release decides.
		t[name].lock, t[name].removed = lock, ""
	}
	for name, entry := range t {
		if _, ok := known[name]; !ok && entry.removed == "" {
			entry.removed = release.minor
		}
	}
}

// ---- sources ----

type release struct {
	version, minor string
	first          bool
}

// source downloads a module of the release, and returns its folder.
func (r release) source(module, major string) (string, error) {
	_, patch, _ := strings.Cut(r.version, ".")
	out, err := exec.Command("go", "mod", "download", "-json", module+"@v"+major+"."+patch).Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w: %s", module, err, out)
	}
	var info struct{ Dir string }
	return info.Dir, json.Unmarshal(out, &info)
}

// read reads a file of a module of the release.
func (r release) read(module, major string, path ...string) (string, error) {
	dir, err := r.source(module, major)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(append([]string{dir}, path...)...))
	return string(data), err
}

// The reference list calls some feature gates by their Go identifiers.
var gateNames = map[string]string{
	"CPUCFSQuotaPeriod":         "CustomCPUCFSQuotaPeriod",
	"RuntimeClassInImageCriAPI": "RuntimeClassInImageCriApi",
}

// The tables follow Gardener, which differs for some feature gates: it knows two of client-go; of the logging
// library it knows only one, which it takes for locked; and it allows to disable a metrics endpoint that is always
// on.
var (
	furtherGates = []string{"AllAlpha", "AllBeta", "InformerResourceVersion", "WatchListClient"}
	unknownGates = []string{"LoggingAlphaOptions", "LoggingBetaOptions"}
	otherLocks   = map[string]lock{"ContextualLogging": {since: "1.30", value: true}, "ComponentSLIs": {}}
)

// featureGates returns the feature gates of Kubernetes' reference list, as Gardener sees them.
func (r release) featureGates() (map[string]lock, error) {
	dir, err := r.source("k8s.io/kubernetes", "1")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "test", "*", "*", "*versioned_feature_list.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no list of feature gates found in %s: %w", dir, err)
	}
	known := map[string]lock{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var features []struct {
			Name  string `json:"name"`
			Specs []struct {
				Default bool   `json:"default"`
				Locked  bool   `json:"lockToDefault"`
				Version string `json:"version"`
			} `json:"versionedSpecs"`
		}
		if err := yaml.Unmarshal(data, &features); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		for _, feature := range features {
			var fixed lock
			for _, spec := range feature.Specs {
				switch {
				case !spec.Locked:
					fixed = lock{}
				case fixed.since == "" || fixed.value != spec.Default:
					fixed = lock{since: cmp.Or(spec.Version, r.minor), value: spec.Default}
				}
			}
			known[cmp.Or(gateNames[feature.Name], feature.Name)] = fixed
		}
	}
	return gardenerView(known), nil
}

func gardenerView(known map[string]lock) map[string]lock {
	for _, name := range furtherGates {
		known[name] = lock{}
	}
	for _, name := range unknownGates {
		delete(known, name)
	}
	for name, fixed := range otherLocks {
		if _, ok := known[name]; ok {
			known[name] = fixed
		}
	}
	return known
}

var informerLine = regexp.MustCompile(`// Group=(\S+), Version=(\S+)|WithResource\("([a-z]+)"\)`)

// apis returns the group versions (v1, apps/v1) and the resources (v1/pods, apps/v1/deployments) that client-go has
// informers for.
func (r release) apis() (map[string]lock, error) {
	source, err := r.read("k8s.io/client-go", "0", "informers", "generic.go")
	if err != nil {
		return nil, err
	}
	known, groupVersion := map[string]lock{}, ""
	for _, match := range informerLine.FindAllStringSubmatch(source, -1) {
		if match[2] != "" {
			groupVersion = strings.TrimPrefix(match[1]+"/"+match[2], "core/")
			known[groupVersion] = lock{}
		} else {
			known[groupVersion+"/"+match[3]] = lock{}
		}
	}
	return known, nil
}

var pluginLine = regexp.MustCompile(`(?m)^\t\w+\.PluginName, +// (\w+)`)

// admissionPlugins returns the admission plugins of kube-apiserver.
func (r release) admissionPlugins() (map[string]lock, error) {
	source, err := r.read("k8s.io/kubernetes", "1", "pkg", "kubeapiserver", "options", "plugins.go")
	if err != nil {
		return nil, err
	}
	known := map[string]lock{}
	for _, match := range pluginLine.FindAllStringSubmatch(source, -1) {
		known[match[1]] = lock{}
	}
	return known, nil
}

// ---- output ----

func write(minors []string, gates, apis, plugins table) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "// Code generated by hack/kubernetes-tables from Kubernetes %s to %s. DO NOT EDIT.\n\npackage corevalidation\n\n",
		minors[0], minors[len(minors)-1])
	fmt.Fprintf(&out,
		"// knownFeatureGates are the feature gates of Kubernetes' components.\nvar knownFeatureGates = map[string]featureGateRange{\n")
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		fields := gates[name].fields()
		if gates[name].lock.since != "" {
			fields = append(fields, "lockedIn: "+strconv.Quote(gates[name].lock.since))
			if gates[name].lock.value {
				fields = append(fields, "lockedValue: true")
			}
		}
		fmt.Fprintf(&out, "%q: {%s},\n", name, strings.Join(fields, ", "))
	}
	fmt.Fprintf(&out, "}\n\n// knownAPIs are the group versions and the resources that kube-apiserver can serve.\n"+
		"var knownAPIs = map[string]versionRange{\n")
	writeRanges(&out, apis)
	fmt.Fprintf(&out, "}\n\n// knownAdmissionPlugins are the admission plugins of kube-apiserver.\n"+
		"var knownAdmissionPlugins = map[string]versionRange{\n")
	writeRanges(&out, plugins)
	out.WriteString("}\n")
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return fmt.Errorf("format the tables: %w", err)
	}
	return os.WriteFile(output, formatted, 0o644)
}

func writeRanges(out *bytes.Buffer, t table) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(out, "%q: {%s},\n", name,
			strings.TrimSuffix(strings.TrimPrefix(strings.Join(t[name].fields(), ""), "versionRange: versionRange{"), "}"))
	}
}

func (e *entry) fields() []string {
	var bounds []string
	if e.added != "" {
		bounds = append(bounds, "added: "+strconv.Quote(e.added))
	}
	if e.removed != "" {
		bounds = append(bounds, "removed: "+strconv.Quote(e.removed))
	}
	if len(bounds) == 0 {
		return nil
	}
	return []string{"versionRange: versionRange{" + strings.Join(bounds, ", ") + "}"}
}
