package restriction

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// check decides on a request: nil allows it, a *refusal refuses it, and any other error is a server error.
type check func(ctx context.Context, r *request) error

// resourceRule has the checks of the requests for a resource. Operations without a check are refused as unexpected.
type resourceRule struct {
	resource  schema.GroupVersionResource
	kindName  string
	newObject func() object
	create    check
	update    check
	status    bool // update also checks the subresource status
	// created is the subresource that create checks, "" for the resource itself.
	created string
	delete  check
}

func (r *resourceRule) kind() schema.GroupVersionKind {
	return r.resource.GroupVersion().WithKind(r.kindName)
}

// The resources of the table, in the versions that the webhook receives.
var (
	backupBuckets       = restrict[corev1beta1.BackupBucket](corev1beta1.SchemeGroupVersion, "backupbuckets", "BackupBucket")
	backupEntries       = restrict[corev1beta1.BackupEntry](corev1beta1.SchemeGroupVersion, "backupentries", "BackupEntry")
	bastions            = restrict[operationsv1alpha1.Bastion](operationsv1alpha1.SchemeGroupVersion, "bastions", "Bastion")
	certificateRequests = restrict[certificatesv1.CertificateSigningRequest](certificatesv1.SchemeGroupVersion,
		"certificatesigningrequests", "CertificateSigningRequest")
	clusterRoleBindings     = restrict[rbacv1.ClusterRoleBinding](rbacv1.SchemeGroupVersion, "clusterrolebindings", "ClusterRoleBinding")
	configMaps              = restrict[corev1.ConfigMap](corev1.SchemeGroupVersion, "configmaps", "ConfigMap")
	controllerInstallations = restrict[corev1beta1.ControllerInstallation](
		corev1beta1.SchemeGroupVersion, "controllerinstallations", "ControllerInstallation")
	gardenlets      = restrict[seedmanagementv1alpha1.Gardenlet](seedmanagementv1alpha1.SchemeGroupVersion, "gardenlets", "Gardenlet")
	internalSecrets = restrict[corev1beta1.InternalSecret](corev1beta1.SchemeGroupVersion, "internalsecrets", "InternalSecret")
	leases          = restrict[coordinationv1.Lease](coordinationv1.SchemeGroupVersion, "leases", "Lease")
	managedSeeds    = restrict[seedmanagementv1alpha1.ManagedSeed](seedmanagementv1alpha1.SchemeGroupVersion,
		"managedseeds", "ManagedSeed")
	secrets            = restrict[corev1.Secret](corev1.SchemeGroupVersion, "secrets", "Secret")
	seeds              = restrict[corev1beta1.Seed](corev1beta1.SchemeGroupVersion, "seeds", "Seed")
	serviceAccounts    = restrict[corev1.ServiceAccount](corev1.SchemeGroupVersion, "serviceaccounts", "ServiceAccount")
	shoots             = restrict[corev1beta1.Shoot](corev1beta1.SchemeGroupVersion, "shoots", "Shoot")
	workloadIdentities = restrict[securityv1alpha1.WorkloadIdentity](securityv1alpha1.SchemeGroupVersion, "workloadidentities", "WorkloadIdentity")
	// A token is created as a subresource of a WorkloadIdentity.
	workloadIdentityTokens = restrict[securityv1alpha1.TokenRequest](securityv1alpha1.SchemeGroupVersion, "workloadidentities", "TokenRequest")
	shootStates            = restrict[corev1beta1.ShootState](corev1beta1.SchemeGroupVersion, "shootstates", "ShootState")
)

func restrict[T any, P interface {
	*T
	object
}](version schema.GroupVersion, resource, kind string) resourceRule {
	return resourceRule{resource: version.WithResource(resource), kindName: kind, newObject: func() object { return P(new(T)) }}
}

// rules returns the table. Each check for UPDATE closes a hole, which its comment in update.go describes. So do the
// checks for DELETE, except those of BackupBuckets and Seeds (delete.go).
func rules() []*resourceRule {
	row := func(r resourceRule, create, update check, status bool, del check) *resourceRule {
		r.create, r.update, r.status, r.delete = create, update, status, del
		return &r
	}
	const withStatus, only = true, false
	token := row(workloadIdentityTokens, createWorkloadIdentityToken, nil, only, nil)
	token.created = "token"
	return []*resourceRule{
		row(backupBuckets, createBackupBucket, updateBackupBucket, withStatus, deleteBackupBucket),
		row(backupEntries, createBackupEntry, updateBackupEntry, withStatus, deleteBackupEntry),
		row(bastions, createBastion, updateBastion, withStatus, nil),
		row(certificateRequests, createCertificateSigningRequest, nil, only, nil),
		row(clusterRoleBindings, createClusterRoleBinding, updateClusterRoleBinding, only, nil),
		row(configMaps, createConfigMap, updateConfigMap, only, deleteExisting(configMaps.resource, keepsForShoot(graph.KindConfigMap))),
		row(controllerInstallations, nil, updateControllerInstallation, withStatus, nil),
		row(gardenlets, writeGardenlet, writeGardenlet, withStatus, nil),
		row(internalSecrets, createInternalSecret, updateInternalSecret, only,
			deleteExisting(internalSecrets.resource, keepsForShoot(graph.KindInternalSecret))),
		row(leases, createLease, nil, only, nil),
		row(managedSeeds, nil, updateManagedSeed, withStatus, nil),
		row(secrets, createSecret, updateSecret, only, deleteExisting(secrets.resource, keepsSecret)),
		row(seeds, writeSeed, writeSeed, withStatus, deleteSeed),
		row(serviceAccounts, createServiceAccount, updateServiceAccount, only, nil),
		row(shoots, nil, updateShoot, withStatus, nil),
		row(shootStates, ownShootState, nil, only, deleteExisting(shootStates.resource, ownShootState)),
		row(workloadIdentities, nil, updateWorkloadIdentity, only, nil),
		token,
	}
}

// byResource has the rules by resource, RESOURCE/SUBRESOURCE for those of a subresource that is created. It is immutable.
var byResource = func() map[schema.GroupResource]*resourceRule {
	index := map[schema.GroupResource]*resourceRule{}
	for _, rule := range rules() {
		key := rule.resource.GroupResource()
		if rule.created != "" {
			key.Resource += "/" + rule.created
		}
		index[key] = rule
	}
	return index
}()

// ruleFor returns the check for a request, or an error if the request is unexpected.
func ruleFor(req *admissionv1.AdmissionRequest) (*resourceRule, check, error) {
	resource := schema.GroupVersionResource(req.Resource)
	rule, known := byResource[schema.GroupResource{Group: resource.Group, Resource: resource.Resource + "/" + req.SubResource}]
	if !known {
		rule, known = byResource[resource.GroupResource()]
	}
	switch {
	case !known:
		return nil, nil, badRequest("unexpected resource: %q", resource.GroupResource())
	case resource.Version != rule.resource.Version:
		return nil, nil, badRequest("unexpected version %q of %s: the webhook is for %q", resource.Version,
			resource.GroupResource(), rule.resource.Version)
	case schema.GroupVersionKind(req.Kind) != rule.kind():
		return nil, nil, badRequest("unexpected kind %s of %s", schema.GroupVersionKind(req.Kind), resource.GroupResource())
	}
	var found check
	switch status := req.SubResource == "status"; {
	case req.Operation == admissionv1.Update && (req.SubResource == "" || status && rule.status):
		found = rule.update
	case req.Operation == admissionv1.Create && req.SubResource == rule.created:
		found = rule.create
	case req.SubResource != "":
		return nil, nil, badRequest("unexpected %s of %s/%s", req.Operation, resource.GroupResource(), req.SubResource)
	case req.Operation == admissionv1.Delete:
		found = rule.delete
	}
	if found == nil {
		return nil, nil, badRequest("unexpected operation: %q of %s", req.Operation, resource.GroupResource())
	}
	return rule, found, nil
}

// Rules returns the rules of the webhook in a ValidatingWebhookConfiguration. They need the failure policy Fail, the
// match policy Equivalent, and MatchConditions.
func Rules() []admissionregistrationv1.RuleWithOperations {
	var all []admissionregistrationv1.RuleWithOperations
	add := func(r *resourceRule, operation admissionregistrationv1.OperationType, c check, resources ...string) {
		if c == nil {
			return
		}
		all = append(all, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.resource.Group}, APIVersions: []string{r.resource.Version}, Resources: resources,
				Scope: ptr.To(admissionregistrationv1.AllScopes),
			},
		})
	}
	for _, r := range rules() {
		created, updated := r.resource.Resource, []string{r.resource.Resource}
		if r.created != "" {
			created += "/" + r.created
		}
		if r.status {
			updated = append(updated, r.resource.Resource+"/status")
		}
		add(r, admissionregistrationv1.Create, r.create, created)
		add(r, admissionregistrationv1.Update, r.update, updated...)
		add(r, admissionregistrationv1.Delete, r.delete, r.resource.Resource)
	}
	return all
}

// MatchConditions returns conditions that exclude the requests of other users: these take no time, and succeed when the
// webhook is down.
func MatchConditions() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{
		Name:       "gardenlets-and-extensions",
		Expression: seedidentity.Condition("request.userInfo.username", "request.userInfo.groups"),
	}}
}
