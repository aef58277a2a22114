package shoot

import (
	"encoding/base64"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node"
)

const (
	unitUser   = "gardener-user.service"
	pathScript = "/var/lib/gardener-user/run.sh"
)

// userScript creates the user to whom the authorized keys belong. It may run again at any time.
const userScript = `#!/bin/bash
set -e
id ` + node.User + ` > /dev/null 2>&1 || useradd -m -s /bin/bash ` + node.User + `
mkdir -p /home/` + node.User + `/.ssh /etc/sudoers.d
chmod 0700 /home/` + node.User + `/.ssh
chown -R ` + node.User + `:` + node.User + ` /home/` + node.User + `
if [ ! -f /etc/sudoers.d/99-gardener-user ]; then
  echo "` + node.User + ` ALL=(ALL) NOPASSWD:ALL" > /etc/sudoers.d/99-gardener-user
fi
`

func userFiles() []extensionsv1alpha1.File {
	return []extensionsv1alpha1.File{{Path: pathScript, Permissions: ptr.To[uint32](0o755), Content: extensionsv1alpha1.FileContent{
		Inline: &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: base64.StdEncoding.EncodeToString([]byte(userScript))},
	}}}
}

func userUnits() []extensionsv1alpha1.Unit {
	return []extensionsv1alpha1.Unit{{
		Name: unitUser, Enable: ptr.To(true), Command: ptr.To(extensionsv1alpha1.CommandStart),
		FilePaths: []string{pathScript, node.PathAuthorizedKeys},
		Content: ptr.To("[Unit]\nDescription=Configure gardener user\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=" +
			pathScript + "\n\n[Install]\nWantedBy=multi-user.target\n"),
	}}
}

// sshUnit returns the unit that starts or stops the machine's SSH server. Stopping it ends open sessions.
func sshUnit(enabled bool) extensionsv1alpha1.Unit {
	command := extensionsv1alpha1.CommandStart
	if !enabled {
		command = extensionsv1alpha1.CommandStop
	}
	return extensionsv1alpha1.Unit{Name: node.UnitSSH, Enable: ptr.To(enabled), Command: &command}
}

// provisionFiles returns the files with which gardener-node-agent begins, and the authorized keys until it has fetched
// the rest. Placeholders are replaced for each machine, so their files are not encoded.
func provisionFiles(files []extensionsv1alpha1.File) []extensionsv1alpha1.File {
	bootFiles := slices.DeleteFunc(slices.Clone(files), func(f extensionsv1alpha1.File) bool {
		return f.Path != node.PathAgentConfig && f.Path != node.PathAuthorizedKeys
	})
	for path, content := range map[string]string{node.PathBootstrapToken: node.PlaceholderBootstrapToken,
		node.PathMachineName: node.PlaceholderMachineName} {
		bootFiles = append(bootFiles,
			extensionsv1alpha1.File{Path: path, Permissions: ptr.To[uint32](0o600), Content: extensionsv1alpha1.FileContent{
				Inline: &extensionsv1alpha1.FileContentInline{Data: content}, TransmitUnencoded: ptr.To(true),
			}})
	}
	slices.SortFunc(bootFiles, func(a, b extensionsv1alpha1.File) int { return strings.Compare(a.Path, b.Path) })
	return bootFiles
}

// agentUnit returns the unit of gardener-node-agent.
func agentUnit() []extensionsv1alpha1.Unit {
	return slices.DeleteFunc(node.Units(), func(u extensionsv1alpha1.Unit) bool { return u.Name != node.UnitNodeAgent })
}
