package shootsecrets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of Secrets that only Gardener's gardenlet has, and keys of their data.
const (
	Bundle         = "-bundle" // the suffix of the name of a CA's bundle
	KeyBundle      = "bundle.crt"
	KeyBundleOfKey = "bundle.key"
)

// Named returns the Secrets with a name in the label of Gardener's secrets manager, the oldest first, or a NotFound error. Those of
// Gardener's gardenlet have a hash in the name of the object, and during a rotation there are two.
func Named(ctx context.Context, seed client.Reader, namespace, name string) ([]corev1.Secret, error) {
	all := &corev1.SecretList{}
	err := seed.List(ctx, all, client.InNamespace(namespace), client.MatchingLabels{labelName: name, labelManagedBy: managedBy})
	if err != nil {
		return nil, fmt.Errorf("listing the Secrets %s of the secrets manager in namespace %s: %w", name, namespace, err)
	}
	if len(all.Items) == 0 {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), namespace+"/"+name)
	}
	slices.SortFunc(all.Items, func(a, b corev1.Secret) int { return cmp.Compare(issuedAt(a), issuedAt(b)) })
	return all.Items, nil
}

func issuedAt(secret corev1.Secret) int64 {
	seconds, err := strconv.ParseInt(secret.Labels[labelIssuedAt], 10, 64)
	if err != nil {
		return secret.CreationTimestamp.Unix()
	}
	return seconds
}
