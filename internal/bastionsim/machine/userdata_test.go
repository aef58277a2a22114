package machine

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Machines boot with user data in the forms that the extensions of operating systems write.
func TestUserDataForms(t *testing.T) {
	const unit = "[Service]\nExecStart=/opt/bin/p\n[Install]\nWantedBy=multi-user.target\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(unit))
	for name, data := range map[string]string{
		"a script with encoded files": `#!/bin/bash
if [ ! -s /etc/containerd/config.toml ] || grep -q '^version = 2$' /etc/containerd/config.toml; then
  mkdir -p /etc/containerd/conf.d && echo 'imports = ["/etc/containerd/conf.d/*.toml"]' >> /etc/containerd/config.toml
  sed -i -E 's/^(version) = .*/\1 = 3/' /etc/containerd/config.toml
  chmod 0644 /etc/containerd/config.toml
fi
until [ -f /etc/os-release ]; do sleep 1; done
mkdir -p "/etc/systemd/system" /etc/pool
cat << EOF | base64 -d > "/etc/systemd/system/p.service"
` + encoded + `
EOF
cat << EOF | base64 -d > '/etc/pool/file'
aGVsbG8K
EOF
chmod "0640" "/etc/pool/file"
HOST=$(curl -s --max-time 1 http://metadata.example.com/name || hostname)
[[ -n ${HOST:-} ]] && echo "$HOST" > /etc/pool/name
useradd -m worker
mkdir -p ~worker/.ssh && echo "ssh-ed25519 AAAA worker" > ~worker/.ssh/authorized_keys
chown -R worker: ~worker/.ssh
systemctl daemon-reload
systemctl enable 'p.service' && systemctl restart --no-block 'p.service'
`,
		"cloud-config": `#cloud-config
users:
- default
- name: worker
  groups: adm, sudo
  sudo: "ALL=(ALL) NOPASSWD:ALL"
  shell: /bin/bash
  ssh_authorized_keys:
  - ssh-ed25519 AAAA worker
write_files:
- path: /etc/systemd/system/p.service
  encoding: b64
  content: |
    ` + encoded + `
- path: /etc/pool/file
  permissions: "0640"
  owner: root:root
  content: |
    hello
runcmd:
- [sh, -c, 'hostname > /etc/pool/name']
- systemctl daemon-reload
- [systemctl, enable, --now, p.service]
`,
	} {
		t.Run(name, func(t *testing.T) {
			p := &runs{}
			r := boot(t, Config{UserData: []byte(data), Programs: map[string]Program{"/opt/bin/p": p.program(forever)}})
			if status := r.CloudInit(); status.Error != "" {
				t.Fatalf("the status: %+v, the log: %s", status, read(t, r, cloudInitLog))
			}
			p.wait(t)
			root := r.FS().As(vfs.Root)
			info, err := root.Stat("/etc/pool/file")
			if err != nil || info.Mode().Perm() != 0o640 || read(t, r, "/etc/pool/file") != "hello\n" {
				t.Errorf("the file: %v, %v", info, err)
			}
			if got := read(t, r, "/etc/pool/name"); got != r.Hostname()+"\n" {
				t.Errorf("the name: %q", got)
			}
			if got := read(t, r, "/home/worker/.ssh/authorized_keys"); got != "ssh-ed25519 AAAA worker\n" {
				t.Errorf("the keys: %q", got)
			}
			a, ok := shell.LookupUser(r.FS(), "worker")
			if info, err := root.Stat("/home/worker/.ssh/authorized_keys"); !ok || err != nil || info.Sys().(*vfs.Stat).UID != a.UID {
				t.Errorf("the user: %+v, its keys: %v, %v", a, info, err)
			}
		})
	}
}

// A failing entry of cloud-config is reported, and the others are applied. No shell interprets the content of a file.
func TestCloudConfigFails(t *testing.T) {
	r := boot(t, Config{UserData: []byte(`#cloud-config
write_files:
- {path: /etc/first, owner: missing, content: a}
- {path: /etc/second, content: "x$(id)\n", append: true}
runcmd:
- echo late >> /etc/second
`)})
	if status := r.CloudInit(); !status.Done || !strings.Contains(status.Error, "writing /etc/first of write_files") {
		t.Errorf("the status: %+v", status)
	}
	if got := read(t, r, "/etc/second"); got != "x$(id)\nlate\n" {
		t.Errorf("the file: %q", got)
	}
}
