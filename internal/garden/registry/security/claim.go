package security

import (
	"context"
	"fmt"
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// gardenerClaim is the claim of a token with the WorkloadIdentity and the objects for which it is used.
type gardenerClaim struct {
	WorkloadIdentity object  `json:"workloadIdentity"`
	Shoot            *object `json:"shoot,omitempty"`
	Project          *object `json:"project,omitempty"`
	Seed             *object `json:"seed,omitempty"`
	BackupBucket     *object `json:"backupBucket,omitempty"`
	BackupEntry      *object `json:"backupEntry,omitempty"`
}

// object identifies an object in the claim.
type object struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	UID       string `json:"uid"`
}

func objectOf(obj metav1.Object) *object {
	return &object{Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: string(obj.GetUID())}
}

// claimOf returns the claim of a token. It contains the context object and related objects only if a gardenlet
// requests the token: other callers could name any object.
func claimOf(ctx context.Context, r plugin.Reader, identity *gardensecurity.WorkloadIdentity, caller user.Info,
	ref *gardensecurity.ContextObject) (gardenerClaim, error) {
	claim := gardenerClaim{WorkloadIdentity: *objectOf(identity)}
	if ref == nil || !slices.Contains(caller.GetGroups(), constants.SeedsGroup) {
		return claim, nil
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || gv.Group != gardencore.GroupName {
		return claim, unsupported(ref)
	}
	f := finder{ctx, r, &claim}
	switch ref.Kind {
	case "Shoot":
		err = f.shoot(ref)
	case "Seed":
		err = f.seed(ref.Name, ref.UID)
	case "BackupBucket":
		err = f.backupBucket(ref.Name, ref.UID)
	case "BackupEntry":
		err = f.backupEntry(ref)
	default:
		err = unsupported(ref)
	}
	return claim, err
}

func unsupported(ref *gardensecurity.ContextObject) error {
	return apierrors.NewInvalid(tokenRequestGVK.GroupKind(), "", field.ErrorList{field.NotSupported(
		field.NewPath("spec", "contextObject", "kind"), ref.APIVersion+", "+ref.Kind, []string{"Shoot", "Seed", "BackupBucket", "BackupEntry"})})
}

// finder reads the objects of a claim.
type finder struct {
	ctx    context.Context
	reader plugin.Reader
	*gardenerClaim
}

// find reads an object. If uid is set, the object must have this UID.
func find[T resource.Object](f finder, plural, namespace, name string, uid types.UID) (T, error) {
	found, err := plugin.Get[T](f.ctx, f.reader, gardencore.Resource(plural), namespace, name)
	if err == nil && uid != "" && found.GetUID() != uid {
		err = apierrors.NewInvalid(tokenRequestGVK.GroupKind(), "", field.ErrorList{field.Invalid(
			field.NewPath("spec", "contextObject", "uid"), uid, fmt.Sprintf("the object of this name has the UID %s", found.GetUID()))})
	}
	return found, err
}

func (f finder) shoot(ref *gardensecurity.ContextObject) error {
	shoot, err := find[*gardencore.Shoot](f, "shoots", ptr.Deref(ref.Namespace, ""), ref.Name, ref.UID)
	if err != nil {
		return err
	}
	f.Shoot = objectOf(shoot)
	if err := f.seedOf(shoot.Spec.SeedName); err != nil {
		return err
	}
	return f.project(shoot.Namespace)
}

func (f finder) seed(name string, uid types.UID) error {
	seed, err := find[*gardencore.Seed](f, "seeds", "", name, uid)
	if err == nil {
		f.Seed = objectOf(seed)
	}
	return err
}

// seedOf adds the seed of an object, if it has one.
func (f finder) seedOf(name *string) error {
	if ptr.Deref(name, "") == "" {
		return nil
	}
	return f.seed(*name, "")
}

func (f finder) project(namespace string) error {
	projects, err := plugin.List[*gardencore.Project](f.ctx, f.reader, gardencore.Resource("projects"), "",
		fields.OneTermEqualSelector(gardencore.ProjectNamespace, namespace))
	if err != nil {
		return fmt.Errorf("looking for the Project of the namespace %s: %w", namespace, err)
	}
	if len(projects) == 0 {
		return fmt.Errorf("the namespace %s has no Project", namespace)
	}
	f.Project = objectOf(projects[0])
	return nil
}

func (f finder) backupBucket(name string, uid types.UID) error {
	bucket, err := find[*gardencore.BackupBucket](f, "backupbuckets", "", name, uid)
	if err != nil {
		return err
	}
	f.BackupBucket = objectOf(bucket)
	return f.seedOf(bucket.Spec.SeedName)
}

func (f finder) backupEntry(ref *gardensecurity.ContextObject) error {
	entry, err := find[*gardencore.BackupEntry](f, "backupentries", ptr.Deref(ref.Namespace, ""), ref.Name, ref.UID)
	if err != nil {
		return err
	}
	f.BackupEntry = objectOf(entry)
	bucket, err := find[*gardencore.BackupBucket](f, "backupbuckets", "", entry.Spec.BucketName, "")
	if err != nil {
		return err
	}
	f.BackupBucket = objectOf(bucket)
	if err := f.seedOf(entry.Spec.SeedName); err != nil {
		return err
	}
	return f.shootOfEntry(entry)
}

// shootOfEntry adds the Shoot that owns a BackupEntry to the claim, unless the entry's name contains the ID of
// another Shoot: the entry can belong to a deleted Shoot of the same name.
func (f finder) shootOfEntry(entry *gardencore.BackupEntry) error {
	index := slices.IndexFunc(entry.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Shoot" })
	if index < 0 {
		return nil
	}
	shoot, err := find[*gardencore.Shoot](f, "shoots", entry.Namespace, entry.OwnerReferences[index].Name, "")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if strings.TrimPrefix(entry.Name, constants.BackupSourcePrefix+"-") != shoot.Status.TechnicalID+"--"+string(shoot.UID) {
		return nil
	}
	f.Shoot = objectOf(shoot)
	return f.project(shoot.Namespace)
}
