package provider

import (
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/node"
)

const (
	// userDataPrefix is the prefix of the names of Secrets with user data, as in Gardener.
	userDataPrefix = "osc-result-"
	// userDataKey is the key of the user data in them.
	userDataKey = "cloud_config"

	unitsFolder = "/etc/systemd/system"
	// heredoc marks the end of a file's content in a script.
	heredoc = "GARDENLITE_END_OF_FILE"
)

// reconcileOSC generates user data for the provisioning of a machine, which fetches later configurations itself.
func reconcileOSC(ctx context.Context, seed client.Client, osc *extensionsv1alpha1.OperatingSystemConfig) error {
	if osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
		osc.Status.CloudConfig = nil
		return nil
	}
	script, err := provisioning(ctx, seed, osc)
	if err != nil {
		return err
	}
	secret := userDataSecret(osc)
	_, err = controllerutil.CreateOrUpdate(ctx, seed, secret, func() error {
		secret.Data = map[string][]byte{userDataKey: []byte(script)}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing the user data of OperatingSystemConfig %s/%s into Secret %s: %w", osc.Namespace, osc.Name, secret.Name, err)
	}
	osc.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}}
	return nil
}

func deleteOSC(ctx context.Context, seed client.Client, osc *extensionsv1alpha1.OperatingSystemConfig) error {
	secret := userDataSecret(osc)
	if err := seed.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the user data of OperatingSystemConfig %s/%s in Secret %s: %w", osc.Namespace, osc.Name, secret.Name, err)
	}
	return nil
}

func userDataSecret(osc *extensionsv1alpha1.OperatingSystemConfig) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: osc.Namespace, Name: userDataPrefix + osc.Name}}
}

// provisioning returns a script that writes files and units and starts the units.
func provisioning(ctx context.Context, seed client.Client, osc *extensionsv1alpha1.OperatingSystemConfig) (string, error) {
	script := &strings.Builder{}
	script.WriteString("#!/bin/bash\n")
	for _, file := range osc.Spec.Files {
		if file.Content.ImageRef != nil {
			continue // programs are part of the simulated machine
		}
		content, err := contentOf(ctx, seed, osc.Namespace, file)
		if err != nil {
			return "", err
		}
		write(script, file.Path, fmt.Sprintf("%04o", ptr.Deref(file.Permissions, 0o644)), content)
	}
	for _, unit := range osc.Spec.Units {
		if unit.Content != nil {
			write(script, path.Join(unitsFolder, unit.Name), "0644", *unit.Content)
		}
		for _, dropIn := range unit.DropIns {
			write(script, path.Join(unitsFolder, unit.Name+".d", dropIn.Name), "0644", dropIn.Content)
		}
	}
	script.WriteString("systemctl daemon-reload\n")
	for _, unit := range osc.Spec.Units {
		enable := "enable"
		if !ptr.Deref(unit.Enable, true) {
			enable = "disable"
		}
		fmt.Fprintf(script, "systemctl %s %s\n", enable, quoted(unit.Name))
		fmt.Fprintf(script, "systemctl %s %s\n", ptr.Deref(unit.Command, extensionsv1alpha1.CommandStart), quoted(unit.Name))
	}
	return script.String(), nil
}

func contentOf(ctx context.Context, seed client.Client, namespace string, file extensionsv1alpha1.File) (string, error) {
	switch {
	case file.Content.Inline != nil:
		content, err := node.Content(file)
		if err != nil {
			return "", operation.ConfigurationProblem(err)
		}
		return string(content), nil
	case file.Content.SecretRef != nil:
		secret := &corev1.Secret{}
		if err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: file.Content.SecretRef.Name}, secret); err != nil {
			return "", fmt.Errorf("reading the file %s in Secret %s/%s: %w", file.Path, namespace, file.Content.SecretRef.Name, err)
		}
		return string(secret.Data[file.Content.SecretRef.DataKey]), nil
	}
	return "", nil
}

// write makes a script write a file with exactly the given content. Text stays readable, so that placeholders in it can be
// replaced for each machine.
func write(script *strings.Builder, file, mode, content string) {
	target := quoted(file)
	fmt.Fprintf(script, "mkdir -p %s\n", quoted(path.Dir(file)))
	switch {
	case strings.ContainsRune(content, 0) || !utf8.ValidString(content):
		fmt.Fprintf(script, "echo %s | base64 -d > %s\n", base64.StdEncoding.EncodeToString([]byte(content)), target)
	case strings.HasSuffix(content, "\n") && !strings.Contains(content, heredoc):
		fmt.Fprintf(script, "cat > %s <<'%s'\n%s%s\n", target, heredoc, content, heredoc)
	default:
		fmt.Fprintf(script, "printf '%%s' %s > %s\n", quoted(content), target)
	}
	fmt.Fprintf(script, "chmod %s %s\n", quoted(mode), target)
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
