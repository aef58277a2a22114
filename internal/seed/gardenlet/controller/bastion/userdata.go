package bastion

import (
	"fmt"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"golang.org/x/crypto/ssh"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/bastionspec"
)

// specOf returns the spec of the Bastion in the seed for a Bastion of the garden.
func specOf(bastion *operationsv1alpha1.Bastion) (extensionsv1alpha1.BastionSpec, error) {
	data, err := userData(bastion.Spec.SSHPublicKey)
	if err != nil {
		return extensionsv1alpha1.BastionSpec{}, fmt.Errorf("spec.sshPublicKey of the Bastion: %w", err)
	}
	spec := extensionsv1alpha1.BastionSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: ptr.Deref(bastion.Spec.ProviderType, "")},
		UserData:    data, Ingress: make([]extensionsv1alpha1.BastionIngressPolicy, len(bastion.Spec.Ingress)),
	}
	for i, ingress := range bastion.Spec.Ingress {
		spec.Ingress[i] = extensionsv1alpha1.BastionIngressPolicy{IPBlock: ingress.IPBlock}
	}
	return spec, nil
}

// userData returns the script that a bastion runs at its first boot: it creates one user with one authorized key. Of
// the text that the user gave, the script contains only the parsed key, so that nothing else gets into the script or
// into authorized_keys.
func userData(publicKey string) ([]byte, error) {
	key, err := bastionspec.ParsePublicKey(publicKey)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `#!/bin/bash -eu

id gardener || useradd gardener -mU
mkdir -p /home/gardener/.ssh
echo "%s" > /home/gardener/.ssh/authorized_keys
chmod 700 /home/gardener/.ssh
chmod 600 /home/gardener/.ssh/authorized_keys
chown -R gardener:gardener /home/gardener/.ssh
mkdir -p /etc/sudoers.d
echo "gardener ALL=(ALL) NOPASSWD:ALL" > /etc/sudoers.d/99-gardener-user
chmod 440 /etc/sudoers.d/99-gardener-user
systemctl start sshd || systemctl start ssh
`, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))), nil
}
