package gardenapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// accessWorld has two seeds with every object that seeds can have (testdata/access*.yaml), and the users who request
// them.
type accessWorld struct {
	name, dir string // of the world, and of its landscape
	config    *rest.Config
	kube      kubernetes.Interface
	dyn       dynamic.Interface
	a, b      accessSeed

	gardenletA, gardenletB, extensionA, elsewhere *accessUser

	objects []accessObject
	*accessPaths
}

// accessSeed is a seed of the world, with the UIDs that are in the names of its objects.
type accessSeed struct{ name, uid, shootUID string }

// accessObject is an existing object.
type accessObject struct {
	resource, namespace, name string
	of                        string // the seed that it is made for, "" if none
}

// newAccessWorld creates a world in a landscape.
func newAccessWorld(t *testing.T, name, dir string, admin *rest.Config) *accessWorld {
	t.Helper()
	w := &accessWorld{name: name, dir: dir, config: rest.CopyConfig(admin), a: accessSeed{name: name + "-a"},
		b: accessSeed{name: name + "-b"}, accessPaths: newAccessPaths()}
	w.config.QPS, w.config.WarningHandler = -1, rest.NoWarnings{}
	var err error
	w.kube, err = kubernetes.NewForConfig(w.config)
	must(t, err)
	w.dyn, err = dynamic.NewForConfig(w.config)
	must(t, err)
	for _, obj := range w.read(t, "testdata/access.yaml", "") {
		w.create(t, obj, "")
	}
	for _, seed := range []*accessSeed{&w.a, &w.b} {
		for _, obj := range w.read(t, "testdata/access-seed.yaml", seed.name) {
			w.create(t, obj, seed.name)
		}
		w.finish(t, seed)
	}
	w.users(t)
	return w
}

func (w *accessWorld) users(t *testing.T) {
	t.Helper()
	w.gardenletA, w.gardenletB = gardenletUser(t, w.dir, w.a.name), gardenletUser(t, w.dir, w.b.name)
	w.extensionA = tokenUser(t, w, "seed-"+w.a.name, "extension-x")
	w.elsewhere = tokenUser(t, w, "garden-"+w.name, "extension-elsewhere")
}

// asker is a user, with its kind in "Implemented Rules" and its seed.
type asker struct {
	*accessUser
	kind accessKind
	seed string
}

func (w *accessWorld) askers() []asker {
	return []asker{{w.gardenletA, aGardenlet, w.a.name}, {w.gardenletB, aGardenlet, w.b.name},
		{w.extensionA, anExtension, w.a.name}, {w.elsewhere, neither, ""}}
}

func (w *accessWorld) read(t *testing.T, file, seed string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(strings.NewReplacer("WORLD", w.name, "SEED", seed).Replace(string(data))), 4096)
	var all []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, obj)
	}
}

// at returns the administrator's client for the objects of a resource.
func (w *accessWorld) at(resource, namespace string) dynamic.ResourceInterface {
	in := accessResources[resource]
	version := in.Path[strings.LastIndex(in.Path, "/")+1:]
	all := w.dyn.Resource(schema.GroupVersionResource{Group: in.Group, Version: version, Resource: in.Name})
	if namespace == "" {
		return all
	}
	return all.Namespace(namespace)
}

// create creates an object. It retries, because admission may not know yet what was created just before.
func (w *accessWorld) create(t *testing.T, obj *unstructured.Unstructured, seed string) {
	t.Helper()
	resource := resourceOf(obj.GetKind())
	var last error
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := w.at(resource, obj.GetNamespace()).Create(ctx, obj, created)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		return fmt.Errorf("%s %s: %w", resource, obj.GetName(), last)
	})
	w.objects = append(w.objects, accessObject{resource, obj.GetNamespace(), obj.GetName(), seed})
	if resource == "namespacedcloudprofiles" {
		w.merge(t, obj.GetNamespace(), obj.GetName())
	}
}

// merge does what a controller does with a NamespacedCloudProfile: it copies the parent's spec into the status,
// which counts for shoots.
func (w *accessWorld) merge(t *testing.T, namespace, name string) {
	t.Helper()
	parent, err := w.at("cloudprofiles", "").Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	status, err := json.Marshal(map[string]any{"status": map[string]any{"cloudProfileSpec": parent.Object["spec"], "observedGeneration": 1}})
	must(t, err)
	w.patchStatus(t, "namespacedcloudprofiles", namespace, name, string(status))
}

// finish creates the objects that are named after UIDs, and those with keys.
func (w *accessWorld) finish(t *testing.T, seed *accessSeed) {
	t.Helper()
	project := "garden-" + w.name
	uidOf := func(resource, namespace string) string {
		obj, err := w.at(resource, namespace).Get(t.Context(), seed.name, metav1.GetOptions{})
		must(t, err)
		return string(obj.GetUID())
	}
	seed.uid, seed.shootUID = uidOf("seeds", ""), uidOf("shoots", project)
	make := func(object map[string]any) { w.create(t, &unstructured.Unstructured{Object: object}, seed.name) }
	make(bucketObject(seed.uid, seed.name, seed.name+"-backup"))
	w.patchStatus(t, "backupbuckets", "", seed.uid,
		fmt.Sprintf(`{"status":{"generatedSecretRef":{"namespace":"garden","name":"generated-bucket-%s"}}}`, seed.uid))
	entry := entryObject(project, seed.name, seed.name, seed.uid)
	entry["metadata"].(map[string]any)["ownerReferences"] = []any{
		map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": seed.name, "uid": seed.shootUID}}
	make(entry)
	make(secretObject("garden", "generated-bucket-"+seed.uid, ""))
	make(secretObject("gardener-system-shoot-issuer", w.name+"--"+seed.shootUID, ""))
	make(tokenObject(bootstrapTokenOf("garden", seed.name+"-t"),
		"seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/"+seed.name+"-t"))
	make(tokenObject(bootstrapTokenOf("garden", seed.name), "seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/"+seed.name))
	make(requestObject(t, seed.name, seed.name))
	make(requestObject(t, seed.name+"-other", "user"))
	w.describe(t, w.name, *seed)
}

// entryName gives a shoot a technical ID, as its gardenlet would, and returns the name of its BackupEntry.
func (w *accessWorld) entryName(t *testing.T, shoot string) string {
	t.Helper()
	obj, err := w.at("shoots", "garden-"+w.name).Get(t.Context(), shoot, metav1.GetOptions{})
	must(t, err)
	id, uid := "shoot--"+w.name+"--"+shoot, string(obj.GetUID())
	w.patchStatus(t, "shoots", "garden-"+w.name, shoot, fmt.Sprintf(`{"status":{"technicalID":%q,"uid":%q}}`, id, uid))
	return id + "--" + uid
}

// nameForSeed labels a Secret of the garden, so that a seed may refer to it.
func (w *accessWorld) nameForSeed(t *testing.T, secret, seed string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"name.seed.gardener.cloud/%s":"true"}}}`, seed)
	_, err := w.at("secrets", "garden").Patch(t.Context(), secret, "application/merge-patch+json", patch, metav1.PatchOptions{})
	must(t, err)
}

// ownedByShoot gives a BackupEntry a shoot as its owner; its name ends with the UID of the shoot that it is named after.
func ownedByShoot(object map[string]any, shoot string) map[string]any {
	metadata := object["metadata"].(map[string]any)
	name := metadata["name"].(string)
	uid := name[strings.LastIndex(name, "--")+1:]
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": shoot, "uid": strings.TrimPrefix(uid, "-")}}
	return object
}

func (w *accessWorld) patchStatus(t *testing.T, resource, namespace, name, patch string) {
	t.Helper()
	_, err := w.at(resource, namespace).Patch(t.Context(), name, "application/merge-patch+json", []byte(patch),
		metav1.PatchOptions{}, "status")
	must(t, err)
}

// accessPaths are the paths that the test expects: edges by the object that causes them.
type accessPaths struct {
	mu     sync.RWMutex
	causes map[string]edgesOf
}

type edgesOf struct{ from, to []string }

func newAccessPaths() *accessPaths { return &accessPaths{causes: map[string]edgesOf{}} }

// describe adds the edges in access-paths.txt for a seed.
func (p *accessPaths) describe(t *testing.T, world string, seed accessSeed) {
	t.Helper()
	data, err := os.ReadFile("testdata/access-paths.txt")
	must(t, err)
	text := strings.NewReplacer("UID-OF-SEED", seed.uid, "UID-OF-SHOOT", seed.shootUID, "TOKEN",
		bootstrapTokenOf("garden", seed.name+"-t"), "WORLD", world, "SEED", seed.name).Replace(string(data))
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		object, edges, _ := strings.Cut(line, ": ")
		from, to, found := strings.Cut(edges, ">")
		if !found {
			t.Fatalf("access-paths.txt: no > in %q", line)
		}
		p.add(object, list(from), list(to))
	}
}

func list(text string) (items []string) {
	for item := range strings.SplitSeq(text, ";") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func (p *accessPaths) add(object string, from, to []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.causes[object]
	p.causes[object] = edgesOf{append(was.from, from...), append(was.to, to...)}
}

// remove removes an object, and returns the edges that it caused.
func (p *accessPaths) remove(object string) (was edgesOf, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, found = p.causes[object]
	delete(p.causes, object)
	return was, found
}

// point changes the objects that an object points to.
func (p *accessPaths) point(object string, to ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.causes[object] = edgesOf{p.causes[object].from, to}
}

func vertexName(resource, namespace, name string) string {
	if accessResources[resource].Namespaced {
		return resource + " " + namespace + "/" + name
	}
	return resource + " " + name
}

func (p *accessPaths) leads(resource, namespace, name, seed string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	target, seen := "seeds "+seed, map[string]bool{}
	var reach func(string) bool
	reach = func(from string) bool {
		if from == target {
			return true
		}
		if seen[from] {
			return false
		}
		seen[from] = true
		return slices.ContainsFunc(p.next(from), reach)
	}
	return reach(vertexName(resource, namespace, name))
}

func (p *accessPaths) next(from string) []string {
	to := slices.Clone(p.causes[from].to)
	for object, edges := range p.causes {
		if slices.Contains(edges.from, from) {
			to = append(to, object)
		}
	}
	return to
}
