package restriction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// Handler decides on admission requests. It is stateless, and safe for concurrent use.
type Handler struct {
	reader Reader
	access Access
	clock  clock.PassiveClock
}

// New returns a Handler. Without an Access, deletions that depend on the dependency graph are refused. The clock
// determines whether a seed's client certificate has expired; if nil, it is the wall clock.
func New(reader Reader, access Access, passive clock.PassiveClock) *Handler {
	if access == nil {
		access = unknownAccess{}
	}
	return &Handler{reader: reader, access: access, clock: cmp.Or[clock.PassiveClock](passive, clock.RealClock{})}
}

type object interface {
	runtime.Object
	metav1.Object
}

// request is a decoded request of a gardenlet or an extension.
type request struct {
	*Handler
	user      authenticationv1.UserInfo
	seed      string // the user's seed
	extension bool   // the user is an extension, not a gardenlet
	namespace string
	name      string
	obj, old  object // obj is nil for DELETE, old for CREATE and for a DELETE without an object
	before    object // old, or an empty object for CREATE
	absent    bool   // the object to delete does not exist
}

// refusal is the answer to a refused request, as opposed to a server error. As in Gardener, most have a code alone.
type refusal struct {
	code    int32
	reason  metav1.StatusReason
	message string
}

func (r *refusal) Error() string { return r.message }

func forbidden(format string, args ...any) error {
	return &refusal{http.StatusForbidden, "", fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, "", fmt.Sprintf(format, args...)}
}

// foreign returns the reason of most refusals.
func foreign(seed string) string { return fmt.Sprintf("object does not belong to seed %q", seed) }

// Handle answers a request. The response is never nil. It allows every user who is neither a gardenlet nor an
// extension.
func (h *Handler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if req == nil {
		return respond("", badRequest("the AdmissionReview carries no request"))
	}
	identity := seedidentity.OfAuthentication(req.UserInfo)
	if identity.Type == seedidentity.None {
		return respond(req.UID, nil)
	}
	return respond(req.UID, h.restrict(ctx, identity, req))
}

func (h *Handler) restrict(ctx context.Context, identity seedidentity.Identity, req *admissionv1.AdmissionRequest) error {
	rule, check, err := ruleFor(req)
	if err != nil {
		return err
	}
	r := &request{
		Handler: h, user: req.UserInfo, seed: identity.Seed, extension: identity.Type == seedidentity.Extension,
		namespace: req.Namespace, name: req.Name,
	}
	if r.extension && !extensionsWrite(rule) {
		return forbidden("extensions must not %s %s", strings.ToLower(string(req.Operation)), rule.resource.Resource)
	}
	if err := r.decode(rule, req); err != nil {
		return err
	}
	if req.Operation == admissionv1.Update {
		if err := r.keepsFromDeletion(ctx, rule); err != nil {
			return err
		}
	}
	err = check(ctx, r)
	var no *refusal
	if req.Operation == admissionv1.Create && errors.As(err, &no) && no.code == http.StatusForbidden {
		return r.alreadyExists(ctx, rule, err)
	}
	return err
}

// extensionsWrite reports whether extensions may write the resource: leases for their leader election, and tokens for
// their infrastructure.
func extensionsWrite(rule *resourceRule) bool {
	return rule.resource == leases.resource || rule.created != ""
}

// alreadyExists returns AlreadyExists if the object exists and the user may read it, instead of the refusal. It does
// not allow the request so that the API server would answer AlreadyExists: the object could be deleted before the
// write.
func (r *request) alreadyExists(ctx context.Context, rule *resourceRule, refused error) error {
	if rule.created != "" || !r.access.MayRead(ctx, r.user, rule.resource.GroupResource(), r.namespace, r.name) {
		return refused
	}
	exists, err := r.find(ctx, rule.resource, r.namespace, r.name, rule.newObject())
	if err != nil || !exists {
		return refused
	}
	return &refusal{http.StatusConflict, metav1.StatusReasonAlreadyExists,
		fmt.Sprintf("%s %q already exists", rule.resource.GroupResource(), r.name)}
}

func (r *request) decode(rule *resourceRule, req *admissionv1.AdmissionRequest) (err error) {
	switch req.Operation {
	case admissionv1.Delete:
		if r.name == "" {
			return forbidden("objects are to be deleted one by one")
		}
		if len(req.OldObject.Raw) > 0 {
			r.old, err = decode(rule, req.OldObject, "oldObject")
		}
	case admissionv1.Update:
		if r.old, err = decode(rule, req.OldObject, "oldObject"); err == nil {
			r.obj, err = decode(rule, req.Object, "object")
		}
	default:
		r.obj, err = decode(rule, req.Object, "object")
	}
	if err != nil {
		return err
	}
	for _, obj := range []object{r.old, r.obj} {
		if obj == nil {
			continue
		}
		if rule.created != "" {
			obj.SetName(r.name) // the object of a subresource needs no name
		}
		if r.name == "" {
			r.name = obj.GetName() // generated by the API server
		}
		if obj.GetName() != r.name || obj.GetNamespace() != "" && obj.GetNamespace() != r.namespace {
			return badRequest("the request is about %s %q but carries %q", rule.resource.Resource, key(r.namespace, r.name),
				key(obj.GetNamespace(), obj.GetName()))
		}
		obj.SetNamespace(r.namespace)
	}
	if r.before = r.old; r.before == nil {
		r.before = rule.newObject()
		r.before.SetName(r.name)
	}
	return nil
}

func decode(rule *resourceRule, raw runtime.RawExtension, field string) (object, error) {
	obj := rule.newObject()
	if len(raw.Raw) == 0 {
		return nil, badRequest("the request carries no %s", field)
	}
	// Case-sensitive like the API server, so that both decode the same.
	if err := utiljson.Unmarshal(raw.Raw, obj); err != nil {
		return nil, badRequest("decoding %s: %v", field, err)
	}
	if kind := obj.GetObjectKind().GroupVersionKind(); !kind.Empty() && kind != rule.kind() {
		return nil, badRequest("%s is a %s, not a %s", field, kind, rule.kind())
	}
	if rule.created == "" && obj.GetName() == "" && obj.GetGenerateName() == "" {
		return nil, badRequest("%s has no name", field)
	}
	return obj, nil
}

func respond(uid types.UID, err error) *admissionv1.AdmissionResponse {
	if err == nil {
		return &admissionv1.AdmissionResponse{UID: uid, Allowed: true}
	}
	no := &refusal{code: http.StatusInternalServerError, message: err.Error()}
	errors.As(err, &no)
	return &admissionv1.AdmissionResponse{UID: uid, Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: no.code, Reason: no.reason, Message: no.message,
	}}
}
