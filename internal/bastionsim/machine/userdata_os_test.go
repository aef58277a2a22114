package machine

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

const provisionUnit = "[Service]\nExecStart=/opt/bin/init\n[Install]\nWantedBy=multi-user.target\n"

// osFiles returns the part of a script that writes files and units of an OperatingSystemConfig, as Gardener's
// extensions for operating systems write it.
func osFiles() string {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return `
mkdir -p "/var/lib/provision"

cat << EOF | base64 -d > "/var/lib/provision/token"
` + encode("abcdef.0123456789abcdef\n") + `
EOF
chmod "0640" "/var/lib/provision/token"

cat << EOF | base64 -d > "/etc/systemd/system/init.service"
` + encode(provisionUnit) + `
EOF
`
}

const (
	// containerdConfig writes a configuration for containerd and makes its unit read it.
	containerdConfig = `
if [ ! -s /etc/containerd/config.toml ]; then
  mkdir -p /etc/containerd/
  containerd config default > /etc/containerd/config.toml
  chmod 0644 /etc/containerd/config.toml
fi
mkdir -p /etc/systemd/system/containerd.service.d
cat <<EOF > /etc/systemd/system/containerd.service.d/11-exec_config.conf
[Service]
ExecStart=
ExecStart=/usr/bin/containerd --config=/etc/containerd/config.toml
EOF
chmod 0644 /etc/systemd/system/containerd.service.d/11-exec_config.conf
`
	startUnits = `
systemctl daemon-reload
systemctl enable containerd && systemctl restart containerd
systemctl enable 'init.service' && systemctl restart --no-block 'init.service'
`
	once = `#!/bin/bash
if [ -f "/var/lib/osc/provision-osc-applied" ]; then
  echo "Provision OSC already applied, exiting..."
  exit 0
fi
`
	applied = `
mkdir -p /var/lib/osc
touch /var/lib/osc/provision-osc-applied
`
)

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

// operatingSystems returns the user data, in all its parts, that the extensions for these operating systems write.
func operatingSystems() map[string]string {
	chost := once + `CONTAINERD_CONFIG_PATH=/etc/containerd/config.toml
if [[ ! -s "${CONTAINERD_CONFIG_PATH}" || $(cat ${CONTAINERD_CONFIG_PATH}) == "# See containerd-config.toml(5) for documentation." ]]; then
  mkdir -p /etc/containerd
  containerd config default > "${CONTAINERD_CONFIG_PATH}"
fi
if systemctl show containerd -p Conflicts | grep -q docker; then
  cp /usr/lib/systemd/system/containerd.service /etc/systemd/system/containerd.service
  sed -re 's/Conflicts=(.*)(docker.service|docker)(.*)/Conflicts=\1 \3/g' -i /etc/systemd/system/containerd.service
fi
` + containerdConfig + osFiles() + `
until zypper -q install -y wget socat jq nfs-client; [ $? -ne 7 ]; do sleep 1; done
ln -s /bin/ip /usr/bin/ip
if [ ! -s /etc/hostname ]; then hostname > /etc/hostname; fi
ln -s /usr/sbin/containerd-ctr /usr/sbin/ctr
systemctl disable docker && systemctl stop docker || echo "No docker service to disable or stop"
if [[ ! -f /etc/systemd/journald.conf.d/10-use-persistent-log-storage.conf ]]; then
  mkdir -p /etc/systemd/journald.conf.d
  cat <<EOF > /etc/systemd/journald.conf.d/10-use-persistent-log-storage.conf
[Journal]
Storage=persistent
EOF
  systemctl restart systemd-journald
fi
` + startUnits + applied
	ubuntu := once + `mkdir -p /etc/cloud/cloud.cfg.d/
cat <<EOF > /etc/cloud/cloud.cfg.d/custom-networking.cfg
network:
  config: disabled
EOF
` + osFiles() + `
UBUNTU_VERSION=""
if [ -f /etc/os-release ]; then
  UBUNTU_VERSION=$(grep '^VERSION_ID=' /etc/os-release | cut -d= -f2 | tr -d '"')
fi
if [ -f /etc/cloud/build.info ]; then
  BUILD_SERIAL=$(grep '^serial:' /etc/cloud/build.info | awk '{print $2}')
fi
until apt-get update -qq; do sleep 1; done
install_package() {
  local name=$1
  local version=$2
  local hold=$3
  if [ -n "$version" ]; then
    until apt-get install --no-upgrade -qqy "${name}=${version}"; do sleep 1; done
  else
    until apt-get install --no-upgrade -qqy "${name}"; do sleep 1; done
  fi
  if [ "$hold" = "true" ]; then
    apt-mark hold "$name"
  fi
}
install_package "containerd" "" false
install_package "jq" "1.7" true
` + containerdConfig + startUnits + applied
	gardenlinux := "#!/bin/bash" + containerdConfig + osFiles() + `
grep -sq "^nfsd$" /etc/modules || echo "nfsd" >>/etc/modules
modprobe nfsd
nslookup $(hostname) || systemctl restart systemd-networkd
systemctl enable docker && systemctl restart docker
` + startUnits
	flatcar := "#!/bin/bash" + `
CONTAINERD_CONFIG=/etc/containerd/config.toml
ALTERNATE_LOGROTATE_PATH="/usr/bin/logrotate"
CONTAINERD="/usr/bin/containerd"
if [ ! -s "$CONTAINERD_CONFIG" ]; then
    mkdir -p "$(dirname "$CONTAINERD_CONFIG")"
    ${CONTAINERD} config default > "$CONTAINERD_CONFIG"
fi
if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    sed -i "s/SystemdCgroup *= *false/SystemdCgroup = true/" "$CONTAINERD_CONFIG"
fi
if [ -f "$ALTERNATE_LOGROTATE_PATH" ]; then
    sed -i "s;/usr/sbin/logrotate;$ALTERNATE_LOGROTATE_PATH;" /etc/systemd/system/containerd-logrotate.service
fi
` + containerdConfig + osFiles() + startUnits
	return map[string]string{
		"suse-chost": chost,
		"memoryone-chost": "Content-Type: multipart/mixed; boundary=\"==BOUNDARY==\"\nMIME-Version: 1.0\n--==BOUNDARY==\n" +
			"Content-Type: text/x-vsmp; section=vsmp\n" +
			"system_memory=6x\nmem_topology=2\n--==BOUNDARY==\nContent-Type: text/x-shellscript\n" + chost + "\n--==BOUNDARY==",
		"ubuntu": "#cloud-config-archive\n- content: |\n" + indent(ubuntu) + "\n  type: text/x-shellscript\n" +
			"- content: |\n    #cloud-config\n    apt:\n      preserve_sources_list: true\n  type: text/cloud-config\n",
		"gardenlinux": gardenlinux,
		"flatcar":     flatcar,
		"flatcar with Ignition": `{"ignition":{"version":"3.3.0"},"storage":{"files":[` +
			`{"path":"/var/lib/provision/token","contents":{"source":"data:,abcdef.0123456789abcdef%0A"},"mode":416}]},` +
			`"systemd":{"units":[{"name":"containerd.service","enabled":true,"dropins":[{"name":"11-exec_config.conf",` +
			`"contents":"[Service]\nExecStart=\nExecStart=/usr/bin/containerd --config=/etc/containerd/config.toml\n"}]},` +
			`{"name":"init.service","enabled":true,"contents":"[Service]\nExecStart=/opt/bin/init\n[Install]\nWantedBy=multi-user.target\n"}]}}`,
	}
}

// TestUserDataOfOperatingSystems boots machines with the user data of each operating system's extension.
func TestUserDataOfOperatingSystems(t *testing.T) {
	for name, data := range operatingSystems() {
		t.Run(name, func(t *testing.T) {
			p := &runs{}
			r := boot(t, Config{UserData: []byte(data), Programs: map[string]Program{"/opt/bin/init": p.program(forever)}})
			if status := r.CloudInit(); status.Error != "" {
				t.Fatalf("the status: %+v, the log: %s", status, read(t, r, cloudInitLog))
			}
			p.wait(t)
			if !r.Units().IsActive("containerd.service") {
				t.Error("containerd does not run")
			}
			info, err := r.FS().As(vfs.Root).Stat("/var/lib/provision/token")
			if err != nil || info.Mode().Perm() != 0o640 || read(t, r, "/var/lib/provision/token") != "abcdef.0123456789abcdef\n" {
				t.Errorf("the file: %v, %v", info, err)
			}
			if got := read(t, r, "/etc/systemd/system/containerd.service.d/11-exec_config.conf"); !strings.Contains(got, "config.toml") {
				t.Errorf("the drop-in: %q", got)
			}
			if log := read(t, r, cloudInitLog); strings.Contains(log, "not found") || strings.Contains(log, "no such unit") {
				t.Errorf("the log: %s", log)
			}
		})
	}
}
