package resourcereferencemanager

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkCredentials checks that the providers of a binding accept its credentials.
func (m *manager) checkCredentials(ctx context.Context, b *binding) error {
	switch b.credentials.Resource {
	case "secrets":
		secret, err := m.deps.Kube.CoreV1().Secrets(b.namespace).Get(ctx, b.of, metav1.GetOptions{})
		if err != nil {
			return unresolved(b.credentialsPath, b.of, err)
		}
		return b.dryRun(secret.ObjectMeta, func(meta metav1.ObjectMeta) error {
			_, err := m.deps.Kube.CoreV1().Secrets(b.namespace).Create(ctx,
				&corev1.Secret{ObjectMeta: meta, Type: secret.Type, Data: secret.Data}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	case "internalsecrets":
		secret, err := get[*gardencore.InternalSecret](ctx, m, gardencore.Resource("internalsecrets"), b.namespace, b.of, b.credentialsPath)
		if err != nil {
			return err
		}
		return b.dryRun(secret.ObjectMeta, func(meta metav1.ObjectMeta) error {
			return m.dryRunInternalSecret(ctx, &gardencorev1beta1.InternalSecret{ObjectMeta: meta, Type: secret.Type, Data: secret.Data})
		})
	}
	identity, err := get[*security.WorkloadIdentity](ctx, m, security.Resource("workloadidentities"), b.namespace, b.of, b.credentialsPath)
	if err != nil {
		return err
	}
	if t := identity.Spec.TargetSystem.Type; !slices.Contains(b.providers, t) {
		return field.Invalid(field.NewPath("provider", "type"), strings.Join(b.providers, ","),
			fmt.Sprintf("the WorkloadIdentity %s/%s is for %q", b.namespace, b.of, t))
	}
	return nil
}

// dryRun creates the credentials once more as a dry run, with the label of each provider. This calls the webhooks of
// the providers' extensions, which validate their credentials.
func (b *binding) dryRun(like metav1.ObjectMeta, create func(metav1.ObjectMeta) error) error {
	for _, provider := range b.providers {
		labels := map[string]string{}
		maps.Copy(labels, like.Labels)
		labels[v1beta1constants.LabelShootProviderPrefix+provider] = "true"
		err := create(metav1.ObjectMeta{GenerateName: b.of, Namespace: b.namespace, Annotations: like.Annotations, Labels: labels})
		if err != nil {
			return field.Invalid(b.credentialsPath, b.namespace+"/"+b.of,
				fmt.Sprintf("credentials like these are refused for provider %q: %v", provider, err))
		}
	}
	return nil
}

// dryRunInternalSecret sends the request to the API server, because only that calls the webhooks. The garden serves
// Gardener's API groups and those of Kubernetes at the same address.
func (m *manager) dryRunInternalSecret(ctx context.Context, secret *gardencorev1beta1.InternalSecret) error {
	version := gardencorev1beta1.SchemeGroupVersion
	secret.TypeMeta = metav1.TypeMeta{APIVersion: version.String(), Kind: "InternalSecret"}
	body, err := json.Marshal(secret)
	if err != nil {
		return fmt.Errorf("encoding an InternalSecret: %w", err)
	}
	return m.deps.Kube.Discovery().RESTClient().Post().
		AbsPath("/apis", version.Group, version.Version, "namespaces", secret.Namespace, "internalsecrets").
		Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		SetHeader("Accept", runtime.ContentTypeJSON).
		Body(body).Do(ctx).Error()
}
