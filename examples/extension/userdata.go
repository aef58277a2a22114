package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// userData makes the user data with which machines of the operating system example-os start: a script that writes files and
// starts units. Later configurations are fetched by the machine itself.
type userData struct{ client.Client }

func (u userData) reconcile(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig) error {
	if osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
		return nil
	}
	script, err := u.script(ctx, osc)
	if err != nil {
		return err
	}
	secret := secretOf(osc)
	if _, err := controllerutil.CreateOrUpdate(ctx, u.Client, secret, func() error {
		secret.Data = map[string][]byte{"cloud_config": []byte(script)}
		return nil
	}); err != nil {
		return fmt.Errorf("writing Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	osc.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}}
	return nil
}

func (u userData) restore(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig) error {
	return u.reconcile(ctx, osc)
}

func (u userData) migrate(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig) error {
	return u.delete(ctx, osc)
}

func (u userData) delete(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig) error {
	return client.IgnoreNotFound(u.Delete(ctx, secretOf(osc)))
}

func secretOf(osc *extensionsv1alpha1.OperatingSystemConfig) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: osc.Namespace, Name: "osc-result-" + osc.Name}}
}

func (u userData) script(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig) (string, error) {
	script := &strings.Builder{}
	script.WriteString("#!/bin/bash\n")
	write := func(file string, mode uint32, content []byte, asText bool) {
		decode, text := "base64 -d", base64.StdEncoding.EncodeToString(content)
		if asText {
			decode, text = "cat", strings.TrimSuffix(string(content), "\n")
		}
		fmt.Fprintf(script, "mkdir -p '%s'\n%s > '%s' <<'EOF'\n%s\nEOF\nchmod %04o '%[3]s'\n", path.Dir(file), decode, file, text, mode)
	}
	for _, file := range osc.Spec.Files {
		if file.Content.ImageRef != nil {
			continue // the machine has the programs
		}
		content, err := u.content(ctx, osc.Namespace, file)
		if err != nil {
			return "", err
		}
		// What is transmitted unencoded has placeholders, which are replaced for each machine.
		write(file.Path, ptr.Deref(file.Permissions, 0o644), content, ptr.Deref(file.Content.TransmitUnencoded, false))
	}
	for _, unit := range osc.Spec.Units {
		const folder = "/etc/systemd/system/"
		if unit.Content != nil {
			write(folder+unit.Name, 0o644, []byte(*unit.Content), false)
		}
		for _, dropIn := range unit.DropIns {
			write(folder+unit.Name+".d/"+dropIn.Name, 0o644, []byte(dropIn.Content), false)
		}
	}
	script.WriteString("systemctl daemon-reload\n")
	for _, unit := range osc.Spec.Units {
		if ptr.Deref(unit.Enable, true) {
			fmt.Fprintf(script, "systemctl enable '%[1]s' && systemctl restart '%[1]s'\n", unit.Name)
		}
	}
	return script.String(), nil
}

// content returns the content of a file, which is in the file itself or in a Secret.
func (u userData) content(ctx context.Context, namespace string, file extensionsv1alpha1.File) ([]byte, error) {
	if inline := file.Content.Inline; inline != nil {
		if inline.Encoding == string(extensionsv1alpha1.B64FileCodecID) {
			return base64.StdEncoding.DecodeString(inline.Data)
		}
		return []byte(inline.Data), nil
	}
	ref := file.Content.SecretRef
	if ref == nil {
		return nil, fmt.Errorf("file %s has no content", file.Path)
	}
	secret := &corev1.Secret{}
	if err := u.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading the content of file %s: %w", file.Path, err)
	}
	return secret.Data[ref.DataKey], nil
}
