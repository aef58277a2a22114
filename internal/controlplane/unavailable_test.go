package controlplane

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// gone is the storage of an etcd that has ended.
type gone struct{ storage.Interface }

var errGone = status.Error(codes.Unavailable, "dial tcp 192.0.2.1:2379: connection refused")

func (gone) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	return errGone
}

func (gone) Delete(context.Context, string, runtime.Object, *storage.Preconditions, storage.ValidateObjectFunc, runtime.Object,
	storage.DeleteOptions) error {
	return errGone
}

func (gone) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return nil, errGone
}

func (gone) Get(context.Context, string, storage.GetOptions, runtime.Object) error { return errGone }

func (gone) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return errGone
}

func (gone) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc,
	runtime.Object) error {
	return errGone
}

func (gone) GetCurrentResourceVersion(context.Context) (uint64, error) { return 0, errGone }

// TestUnavailable checks that the answer of an API server whose datastore is gone is 503, and has no address.
func TestUnavailable(t *testing.T) {
	ctx, store := t.Context(), available{gone{}}
	_, watchErr := store.Watch(ctx, "/x", storage.ListOptions{})
	_, versionErr := store.GetCurrentResourceVersion(ctx)
	for request, err := range map[string]error{
		"create": store.Create(ctx, "/x", &corev1.Secret{}, nil, 0), "watch": watchErr, "version": versionErr,
		"delete": store.Delete(ctx, "/x", &corev1.Secret{}, nil, nil, nil, storage.DeleteOptions{}),
		"get":    store.Get(ctx, "/x", storage.GetOptions{}, &corev1.Secret{}),
		"list":   store.GetList(ctx, "/x", storage.ListOptions{}, &corev1.SecretList{}),
		"update": store.GuaranteedUpdate(ctx, "/x", &corev1.Secret{}, false, nil, nil, nil),
	} {
		answer, is := err.(apierrors.APIStatus)
		if !is || answer.Status().Code != http.StatusServiceUnavailable || strings.Contains(err.Error(), "192.0.2.1") {
			t.Errorf("%s: %v", request, err)
		}
	}
	if err := storage.NewKeyNotFoundError("/x", 1); unavailable(err) != err || unavailable(nil) != nil {
		t.Error("an answer of the datastore is another one")
	}
}
