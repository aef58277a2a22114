package node

import (
	"encoding/json"
	"strings"
)

// UserData returns the script that a machine runs at its first boot: it creates the user, and starts
// gardener-node-agent, which does the rest. The machine controller replaces the placeholders in it.
func UserData(agent AgentConfig, authorizedKeys []string) string {
	agent.TokenFile = PathBootstrapToken
	config, _ := json.Marshal(agent) // encoding strings cannot fail
	var b strings.Builder
	b.WriteString("#!/bin/bash\nset -e\n\n")
	b.WriteString("mkdir -p /var/lib/gardener-node-agent/credentials /etc/systemd/system /etc/sudoers.d\n")
	b.WriteString("chmod 0700 /var/lib/gardener-node-agent /var/lib/gardener-node-agent/credentials\n\n")
	writeFile(&b, PathAgentConfig, "0600", string(config))
	writeFile(&b, PathBootstrapToken, "0600", PlaceholderBootstrapToken)
	writeFile(&b, PathMachineName, "0644", PlaceholderMachineName)
	b.WriteString("useradd -m -s /bin/bash " + User + "\n")
	b.WriteString("mkdir -p /home/" + User + "/.ssh\n")
	writeFile(&b, PathAuthorizedKeys, "0600", strings.TrimSuffix(lines(authorizedKeys), "\n"))
	b.WriteString("chmod 0700 /home/" + User + "/.ssh\n")
	b.WriteString("chown -R " + User + ":" + User + " /home/" + User + "\n")
	writeFile(&b, "/etc/sudoers.d/99-"+User+"-user", "0440", User+" ALL=(ALL) NOPASSWD:ALL")
	writeFile(&b, "/etc/systemd/system/"+UnitNodeAgent, "0644", strings.TrimSuffix(unit("gardener-node-agent", PathNodeAgent), "\n"))
	b.WriteString("systemctl daemon-reload\nsystemctl enable --now " + UnitNodeAgent + "\n")
	return b.String()
}

// writeFile appends a here-document that writes a file. The shell does not expand anything in its content.
func writeFile(b *strings.Builder, path, mode, content string) {
	const end = "GARDENER_EOF"
	b.WriteString("cat << '" + end + "' > " + path + "\n" + content + "\n" + end + "\nchmod " + mode + " " + path + "\n\n")
}
