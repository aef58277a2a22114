package registry

import (
	"context"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	"github.com/gardenlite/gardenlite/internal/garden/scheme"
)

// want describes a resource as the design does, or as Gardener does where the design says nothing.
type want struct {
	group, kind, singular string
	versions              string // the first is the preferred one, if there are several
	namespaced            bool
	shortNames            string
	all                   bool // it is in the category all
	subresources          string
	// unconditional says that updates without a resource version are allowed, generation that objects have a
	// generation.
	unconditional, generation bool
	fields                    string // besides name and namespace
	columns                   string // wide ones in brackets
}

const (
	coreGroup       = "core.gardener.cloud"
	operationsGroup = "operations.gardener.cloud"
	securityGroup   = "security.gardener.cloud"
	seedGroup       = "seedmanagement.gardener.cloud"
)

var wanted = map[string]want{
	"backupbuckets": {group: coreGroup, kind: "BackupBucket", singular: "backupbucket", versions: "v1beta1",
		shortNames: "bbc", all: true, subresources: "status", generation: true,
		fields: "spec.seedName spec.shootRef.name spec.shootRef.namespace", columns: "Name,Provider,Seed,Operation,Progress,Age"},
	"backupentries": {group: coreGroup, kind: "BackupEntry", singular: "backupentry", versions: "v1beta1", namespaced: true,
		shortNames: "bec", all: true, subresources: "status", generation: true,
		fields: "spec.bucketName spec.seedName spec.shootRef.name spec.shootRef.namespace", columns: "Name,Bucket,Seed,Operation,Progress,Age"},
	"cloudprofiles": {group: coreGroup, kind: "CloudProfile", singular: "cloudprofile", versions: "v1beta1",
		shortNames: "cprofile cpfl", subresources: "status", unconditional: true,
		columns: "Name,Provider,Age"},
	"namespacedcloudprofiles": {group: coreGroup, kind: "NamespacedCloudProfile", singular: "namespacedcloudprofile", versions: "v1beta1",
		namespaced: true, shortNames: "nsprofile nscpfl", subresources: "status", unconditional: true, generation: true,
		fields: "spec.parent.name", columns: "Name,Parent Name,Parent Kind,Age"},
	"controllerdeployments": {group: coreGroup, kind: "ControllerDeployment", singular: "controllerdeployment",
		versions: "v1 v1beta1", shortNames: "ctrldeploy", all: true, generation: true,
		columns: "Name,Age"},
	"controllerregistrations": {group: coreGroup, kind: "ControllerRegistration", singular: "controllerregistration",
		versions: "v1beta1", shortNames: "ctrlreg", all: true, generation: true,
		columns: "Name,Resources,Age"},
	"controllerinstallations": {group: coreGroup, kind: "ControllerInstallation", singular: "controllerinstallation",
		versions: "v1beta1", shortNames: "ctrlinst", all: true, subresources: "status", generation: true,
		fields:  "spec.registrationRef.name spec.seedRef.name spec.shootRef.name spec.shootRef.namespace",
		columns: "Name,Registration,Cluster,Valid,Installed,Healthy,Progressing,Age"},
	"exposureclasses": {group: coreGroup, kind: "ExposureClass", singular: "exposureclass", versions: "v1beta1",
		shortNames: "expclass expcls", columns: "Name,Handler,Age"},
	"internalsecrets": {group: coreGroup, kind: "InternalSecret", singular: "internalsecret", versions: "v1beta1",
		namespaced: true, shortNames: "ins", unconditional: true, fields: "type", columns: "Name,Type,Data,Age"},
	"projects": {group: coreGroup, kind: "Project", singular: "project", versions: "v1beta1", subresources: "status",
		unconditional: true, generation: true,
		fields: "spec.namespace", columns: "Name,Namespace,Status,Owner,Creator,Age"},
	"quotas": {group: coreGroup, kind: "Quota", singular: "quota", versions: "v1beta1", namespaced: true,
		shortNames: "squota", unconditional: true, columns: "Name,Scope,Cluster Lifetime,Age"},
	"secretbindings": {group: coreGroup, kind: "SecretBinding", singular: "secretbinding", versions: "v1beta1",
		namespaced: true, shortNames: "sb", unconditional: true, columns: "Name,Secret,Provider,Age"},
	"seeds": {group: coreGroup, kind: "Seed", singular: "seed", versions: "v1beta1", subresources: "status",
		unconditional: true, generation: true,
		columns: "Name,Status,Last Operation,Provider,Region,Age,Version,K8S Version"},
	"shoots": {group: coreGroup, kind: "Shoot", singular: "shoot", versions: "v1beta1", namespaced: true, all: true,
		subresources: "adminkubeconfig binding status viewerkubeconfig", generation: true,
		fields: "spec.cloudProfile.Kind spec.cloudProfile.Name spec.cloudProfileName spec.seedName status.seedName",
		columns: "Name,CloudProfile,Provider,Region,[Seed],K8S Version,Hibernation,Last Operation,Status,[Purpose],[Gardener " +
			"Version],[APIServer],[Control],[Observability],[Nodes],[System],Age"},
	"shootstates": {group: coreGroup, kind: "ShootState", singular: "shootstate", versions: "v1beta1", namespaced: true,
		all: true, generation: true, columns: "Name,Gardener Data,Extension States,Age"},
	"bastions": {group: operationsGroup, kind: "Bastion", singular: "bastion", versions: "v1alpha1", namespaced: true,
		all: true, subresources: "status", generation: true,
		fields: "spec.seedName spec.shootRef.name", columns: "Name,Shoot,Seed,IP,[Port],Heartbeat,Expires,Age"},
	"credentialsbindings": {group: securityGroup, kind: "CredentialsBinding", singular: "credentialsbinding",
		versions: "v1alpha1", namespaced: true, shortNames: "cb", columns: "Name,Provider,APIVersion,Kind,Name,Age"},
	"workloadidentities": {group: securityGroup, kind: "WorkloadIdentity", singular: "workloadidentity", versions: "v1alpha1",
		namespaced: true, shortNames: "wi", subresources: "token", columns: "Name,Sub,Type,[Audiences],Age"},
	"gardenlets": {group: seedGroup, kind: "Gardenlet", singular: "gardenlet", versions: "v1alpha1", namespaced: true,
		shortNames: "gl glet", subresources: "status", generation: true, columns: "Name,OCI Repository,Reconciled,Age"},
	"managedseeds": {group: seedGroup, kind: "ManagedSeed", singular: "managedseed", versions: "v1alpha1", namespaced: true,
		shortNames: "ms", subresources: "status", generation: true,
		fields: "spec.shoot.name", columns: "Name,Status,Shoot,Age"},
	"managedseedsets": {group: seedGroup, kind: "ManagedSeedSet", singular: "managedseedset", versions: "v1alpha1",
		namespaced: true, shortNames: "mss", subresources: "scale status", generation: true, columns: "Name,Ready,Pending,Age"},
}

// fakeGetter makes all stores use the same fakeStorage.
type fakeGetter struct {
	storage  *fakeStorage
	triggers map[string]storage.IndexerFuncs
	indexers map[string]*cache.Indexers
}

func newFakeGetter() *fakeGetter {
	return &fakeGetter{&fakeStorage{}, map[string]storage.IndexerFuncs{}, map[string]*cache.Indexers{}}
}

func (g *fakeGetter) GetRESTOptions(gr schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{GroupResource: gr},
		Decorator: func(_ *storagebackend.ConfigForResource, _ string, _ func(runtime.Object) (string, error), _, _ func() runtime.Object,
			_ storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			g.triggers[gr.Resource], g.indexers[gr.Resource] = triggers, indexers
			return g.storage, func() {}, nil
		},
		ResourcePrefix: "/" + gr.Resource,
	}, nil
}

// fakeStorage returns the same object for every key, and records the last key.
type fakeStorage struct {
	storage.Interface
	object runtime.Object
	key    string
}

func (s *fakeStorage) Get(_ context.Context, key string, _ storage.GetOptions, into runtime.Object) error {
	s.key = key
	if s.object == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(s.object).Elem())
	return nil
}

func (s *fakeStorage) GetList(_ context.Context, key string, _ storage.ListOptions, into runtime.Object) error {
	s.key = key
	if s.object != nil {
		items := reflect.ValueOf(into).Elem().FieldByName("Items")
		items.Set(reflect.Append(items, reflect.ValueOf(s.object).Elem()))
	}
	return nil
}

// newRegistry returns a registry over a fakeGetter: all storage by group version and path, and the reader.
func newRegistry(t *testing.T) (*fakeGetter, map[schema.GroupVersion]map[string]rest.Storage, *Reader) {
	t.Helper()
	getter := newFakeGetter()
	groups, reader, err := New(getter, Config{Clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	paths := map[schema.GroupVersion]map[string]rest.Storage{}
	for _, group := range groups {
		for version, storage := range group.Versions {
			paths[schema.GroupVersion{Group: group.Name, Version: version}] = storage
		}
	}
	return getter, paths, reader
}

func TestEveryResource(t *testing.T) {
	getter, paths, _ := newRegistry(t)
	for _, storage := range paths {
		for path := range storage {
			if _, ok := wanted[strings.Split(path, "/")[0]]; !ok {
				t.Errorf("%s is served", path)
			}
		}
	}
	for name, want := range wanted {
		t.Run(name, func(t *testing.T) {
			var store *resource.Store
			for _, version := range strings.Fields(want.versions) {
				gv := schema.GroupVersion{Group: want.group, Version: version}
				found, ok := paths[gv][name].(*resource.Store)
				if !ok {
					t.Fatalf("%s does not serve it, but %T", gv, paths[gv][name])
				}
				if store != nil && store != found {
					t.Error("the versions do not share the storage")
				}
				store = found
			}
			checkNames(t, store, want)
			checkSubresources(t, paths[schema.GroupVersion{Group: want.group, Version: strings.Fields(want.versions)[0]}], name, want)
			checkFields(t, store, getter, name, want)
			checkColumns(t, store, want)
			checkPreparation(t, store, want)
		})
	}
}

func checkNames(t *testing.T, store *resource.Store, want want) {
	kinds, _, err := scheme.Scheme.ObjectKinds(store.New())
	if err != nil || kinds[0].GroupKind() != (schema.GroupKind{Group: want.group, Kind: want.kind}) {
		t.Errorf("kinds %v, %v", kinds, err)
	}
	if got := store.GetSingularName(); got != want.singular {
		t.Errorf("singular %s", got)
	}
	if store.NamespaceScoped() != want.namespaced {
		t.Errorf("namespaced: %t", store.NamespaceScoped())
	}
	if got := strings.Join(store.ShortNames(), " "); got != want.shortNames {
		t.Errorf("short names %s", got)
	}
	if slices.Contains(store.Categories(), "all") != want.all {
		t.Errorf("categories %v", store.Categories())
	}
	if store.UpdateStrategy.AllowUnconditionalUpdate() != want.unconditional || store.UpdateStrategy.AllowCreateOnUpdate() {
		t.Errorf("unconditional updates: %t, creation by update: %t", store.UpdateStrategy.AllowUnconditionalUpdate(),
			store.UpdateStrategy.AllowCreateOnUpdate())
	}
}

func checkSubresources(t *testing.T, storage map[string]rest.Storage, name string, want want) {
	var got []string
	for path, sub := range storage {
		rest, ok := strings.CutPrefix(path, name+"/")
		if !ok {
			continue
		}
		got = append(got, rest)
		checkVerbs(t, path, sub)
	}
	slices.Sort(got)
	if strings.Join(got, " ") != want.subresources {
		t.Errorf("subresources %v", got)
	}
}

// checkVerbs checks that subresources for requests support only create, and all others only get and update.
func checkVerbs(t *testing.T, path string, sub rest.Storage) {
	_, reads := sub.(rest.Getter)
	_, writes := sub.(rest.Patcher)
	_, creates := sub.(rest.NamedCreater)
	_, createsPlain := sub.(rest.Creater)
	_, deletes := sub.(rest.GracefulDeleter)
	_, lists := sub.(rest.Lister)
	request := strings.HasSuffix(path, "kubeconfig") || strings.HasSuffix(path, "token")
	if reads == request || writes == request || creates != request || createsPlain || deletes || lists {
		t.Errorf("%s: get %t, update %t, create %t or %t, delete %t, list %t", path, reads, writes, creates, createsPlain, deletes, lists)
	}
}

func checkFields(t *testing.T, store *resource.Store, getter *fakeGetter, name string, want want) {
	obj := store.New()
	fill(reflect.ValueOf(obj).Elem(), 0)
	predicate := store.PredicateFunc(labels.Everything(), fields.Everything())
	_, set, err := predicate.GetAttrs(obj)
	if err != nil {
		t.Fatal(err)
	}
	wantSet := append(strings.Fields(want.fields), "metadata.name")
	if want.namespaced {
		wantSet = append(wantSet, "metadata.namespace")
	}
	slices.Sort(wantSet)
	if got := slices.Sorted(maps.Keys(set)); !slices.Equal(got, wantSet) {
		t.Errorf("fields %v, want %v", got, wantSet)
	}
	for field, value := range set {
		if value == "" {
			t.Errorf("field %s is empty", field)
		}
		for _, version := range strings.Fields(want.versions) {
			gvk := schema.GroupVersionKind{Group: want.group, Version: version, Kind: want.kind}
			if _, _, err := scheme.Scheme.ConvertFieldLabel(gvk, field, value); err != nil {
				t.Errorf("clients cannot select by %s: %v", field, err)
			}
		}
	}
	for _, field := range predicate.IndexFields {
		index, ok := (*getter.indexers[name])[storage.FieldIndex(field)]
		if !ok {
			t.Errorf("no index for %s", field)
		} else if values, err := index(obj); err != nil || !slices.Equal(values, []string{set[field]}) {
			t.Errorf("the index of %s has %v, %v", field, values, err)
		}
	}
	if len(getter.triggers[name]) > 1 {
		t.Errorf("the watch cache takes one trigger only, not %v", getter.triggers[name])
	}
	for field, trigger := range getter.triggers[name] {
		if trigger(obj) != set[field] || !slices.Contains(predicate.IndexFields, field) {
			t.Errorf("the trigger of %s has %s", field, trigger(obj))
		}
	}
	if _, _, err := predicate.GetAttrs(&metav1.Status{}); err == nil {
		t.Error("an object of another kind has attributes")
	}
}

func checkColumns(t *testing.T, store *resource.Store, want want) {
	filled := store.New()
	fill(reflect.ValueOf(filled).Elem(), 0)
	for _, obj := range []runtime.Object{store.New(), filled} {
		table, err := store.ConvertToTable(t.Context(), obj, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, column := range table.ColumnDefinitions {
			name := column.Name
			if column.Priority > 0 {
				name = "[" + name + "]"
			}
			names = append(names, name)
		}
		if got := strings.Join(names, ","); got != want.columns {
			t.Errorf("columns %s", got)
		}
		if len(table.Rows) != 1 || len(table.Rows[0].Cells) != len(names) {
			t.Errorf("rows %v", table.Rows)
		}
	}
	table, err := store.ConvertToTable(t.Context(), store.NewList(), &metav1.TableOptions{NoHeaders: true})
	if err != nil || len(table.ColumnDefinitions) > 0 || len(table.Rows) > 0 {
		t.Errorf("an empty list without headers is %v, %v", table, err)
	}
}

// checkPreparation checks what clients can set: the status only through its own endpoint, the generation never.
func checkPreparation(t *testing.T, store *resource.Store, want want) {
	ctx, main := t.Context(), store.UpdateStrategy
	old := store.New()
	metaOf(old).SetName("o")
	touch(t, old, "Status")
	store.CreateStrategy.PrepareForCreate(ctx, old)
	wantGeneration := int64(0)
	if want.generation {
		wantGeneration = 1
	}
	if got := metaOf(old).GetGeneration(); got != wantGeneration {
		t.Errorf("created with generation %d", got)
	}
	if want.kind != "Bastion" && want.kind != "WorkloadIdentity" && want.kind != "Gardenlet" { // a client may create them with a status
		if status := part(old, "Status"); status.IsValid() && !status.IsZero() {
			t.Errorf("created with status %v", status)
		}
	}

	status := old.DeepCopyObject()
	hasStatus := touch(t, status, "Status") && want.kind != "WorkloadIdentity" && want.kind != "Gardenlet"
	main.PrepareForUpdate(ctx, status, old)
	if hasStatus && !reflect.DeepEqual(part(status, "Status").Interface(), part(old, "Status").Interface()) {
		t.Error("the status was updated with the object")
	}
	if metaOf(status).GetGeneration() != wantGeneration {
		t.Error("the status moved the generation")
	}

	spec := old.DeepCopyObject()
	if !touch(t, spec, "Spec") {
		touch(t, spec, "Type")
	}
	main.PrepareForUpdate(ctx, spec, old)
	if want.generation {
		wantGeneration++
	}
	if got := metaOf(spec).GetGeneration(); got != wantGeneration {
		t.Errorf("the spec moved the generation to %d", got)
	}

	deleted := old.DeepCopyObject()
	metaOf(deleted).SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	main.PrepareForUpdate(ctx, deleted, old)
	if got := metaOf(deleted).GetGeneration(); got != wantGeneration {
		t.Errorf("the deletion moved the generation to %d", got)
	}
	checkResetFields(t, "", store.GetResetFields(), want, hasStatus)
}

func checkResetFields(t *testing.T, about string, reset map[fieldpath.APIVersion]*fieldpath.Set, want want, reason bool) {
	if !reason {
		if len(reset) > 0 {
			t.Errorf("%s resets %v", about, reset)
		}
		return
	}
	for _, version := range strings.Fields(want.versions) {
		if set := reset[fieldpath.APIVersion(want.group+"/"+version)]; set == nil || !set.Has(fieldpath.MakePathOrDie("status")) {
			t.Errorf("%s resets %v", about, reset)
		}
	}
}

// TestStatusEndpoints checks that a status endpoint updates the status and keeps the spec.
func TestStatusEndpoints(t *testing.T) {
	_, paths, _ := newRegistry(t)
	tested := 0
	for gv, storages := range paths {
		for path, storage := range storages {
			name, ok := strings.CutSuffix(path, "/status")
			if !ok {
				continue
			}
			tested++
			t.Run(path, func(t *testing.T) {
				store, status := storages[name].(*resource.Store), storage.(*resource.StatusStore)
				old := store.New()
				store.CreateStrategy.PrepareForCreate(t.Context(), old)
				updated := old.DeepCopyObject()
				touch(t, updated, "Spec")
				touch(t, updated, "Status")
				status.UpdateStrategy().PrepareForUpdate(t.Context(), updated, old)
				if !reflect.DeepEqual(part(updated, "Spec").Interface(), part(old, "Spec").Interface()) {
					t.Error("the spec was updated with the status")
				}
				if reflect.DeepEqual(part(updated, "Status").Interface(), part(old, "Status").Interface()) {
					t.Error("the status was not updated")
				}
				if metaOf(updated).GetGeneration() != metaOf(old).GetGeneration() {
					t.Error("the status moved the generation")
				}
				if set := status.GetResetFields()[fieldpath.APIVersion(gv.String())]; set == nil || !set.Has(fieldpath.MakePathOrDie("spec")) {
					t.Errorf("resets %v", set)
				}
			})
		}
	}
	if tested != 12 {
		t.Errorf("%d status endpoints", tested)
	}
}

func TestReader(t *testing.T) {
	getter, _, reader := newRegistry(t)
	ctx, shoots := genericapirequest.WithNamespace(t.Context(), "elsewhere"), gardencore.Resource("shoots")
	if _, err := reader.Get(ctx, shoots, "garden-dev", "s"); !apierrors.IsNotFound(err) {
		t.Errorf("without an object: %v", err)
	}
	getter.storage.object = &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	obj, err := reader.Get(ctx, shoots, "garden-dev", "s")
	if err != nil || obj.(*gardencore.Shoot).Name != "s" || getter.storage.key != "/shoots/garden-dev/s" {
		t.Errorf("get of %s: %v, %v", getter.storage.key, obj, err)
	}
	for namespace, key := range map[string]string{"garden-dev": "/shoots/garden-dev", "": "/shoots"} {
		objs, err := reader.List(ctx, shoots, namespace, nil)
		if err != nil || len(objs) != 1 || getter.storage.key != key {
			t.Errorf("list of %s: %v, %v", getter.storage.key, objs, err)
		}
	}
	if _, err := reader.Get(ctx, schema.GroupResource{Resource: "pods"}, "", "p"); err == nil {
		t.Error("pods can be read")
	}
	if _, err := reader.List(ctx, gardencore.Resource("shoots/status"), "", nil); err == nil {
		t.Error("subresources can be listed")
	}
}

// TestReaderWaits: the watch cache is filled anew when its watch of the datastore was interrupted.
func TestReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := 3
		read := func() (runtime.Object, error) {
			if refusals--; refusals >= 0 {
				return nil, apierrors.NewTooManyRequests("storage is (re)initializing", 1)
			}
			return &gardencore.ShootList{}, nil
		}
		if list, err := whenReady(t.Context(), read); list == nil || err != nil {
			t.Errorf("got %v, %v", list, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		refusals = math.MaxInt
		if _, err := whenReady(ctx, read); !apierrors.IsTooManyRequests(err) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRequests: a request for something that does not exist is a 404.
func TestRequests(t *testing.T) {
	getter, paths, _ := newRegistry(t)
	for path, kind := range map[string]string{"shoots/adminkubeconfig": "AdminKubeconfigRequest",
		"shoots/viewerkubeconfig": "ViewerKubeconfigRequest", "workloadidentities/token": "TokenRequest"} {
		for gv, storages := range paths {
			sub, ok := storages[path].(rest.NamedCreater)
			if !ok {
				continue
			}
			if got := sub.(rest.GroupVersionKindProvider).GroupVersionKind(gv).Kind; got != kind {
				t.Errorf("%s takes %s", path, got)
			}
			ctx := genericapirequest.WithUser(genericapirequest.WithNamespace(t.Context(), "garden-dev"), &user.DefaultInfo{Name: "alice"})
			getter.storage.object = nil
			request := sub.New()
			scheme.Scheme.Default(request)
			if _, err := sub.Create(ctx, "s", request, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s of nothing: %v", path, err)
			}
		}
	}
}
