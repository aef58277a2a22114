package machine

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/users"
	"sigs.k8s.io/yaml"
)

// cloudInit is the unit that user data logs to.
const cloudInit = "cloud-init.service"

// cloudConfig is what is read of a #cloud-config. Packages are there already, or cannot be.
type cloudConfig struct {
	WriteFiles []struct {
		Path, Content, Encoding, Owner, Permissions string
		Append                                      bool
	} `json:"write_files"`
	RunCmd []any `json:"runcmd"`
	Users  []any `json:"users"`
}

type cloudUser struct {
	Name, Shell, Homedir, Gecos string
	Sudo                        any
	Groups                      any
	Keys                        []string
}

// Boot starts the machine: at the first boot it runs the user data. An error of the user data leaves the machine up, as a
// real one is, and is returned.
func (m *Machine) Boot(ctx context.Context) error {
	m.mu.Lock()
	first := !m.seeded
	m.seeded, m.booted = true, m.cfg.Clock.Now()
	m.mu.Unlock()
	if !first || len(m.cfg.UserData) == 0 {
		return nil
	}
	err := m.FS().WriteFile("/var/lib/cloud/instance/user-data.txt", m.cfg.UserData, 0o600)
	if err == nil {
		err = m.userData(ctx)
	}
	u := m.load(cloudInit)
	m.mu.Lock()
	u.Failed, u.Enabled, u.Type = err != nil, true, "oneshot"
	m.mu.Unlock()
	return err
}

func (m *Machine) userData(ctx context.Context) error {
	switch {
	case bytes.HasPrefix(m.cfg.UserData, []byte("#!")):
		return m.script(ctx, cloudInit, "/var/lib/cloud/instance/user-data.txt", string(m.cfg.UserData))
	case bytes.HasPrefix(m.cfg.UserData, []byte("#cloud-config")):
		return m.cloudConfig(ctx)
	}
	return fmt.Errorf("booting machine %s: its user data is neither a script with #! nor a #cloud-config", m.cfg.Hostname)
}

func (m *Machine) cloudConfig(ctx context.Context) error {
	var config cloudConfig
	if err := yaml.Unmarshal(m.cfg.UserData, &config); err != nil {
		return fmt.Errorf("reading the #cloud-config of machine %s: %w", m.cfg.Hostname, err)
	}
	var failed []error
	for _, u := range config.Users {
		failed = append(failed, m.addCloudUser(u))
	}
	for _, f := range config.WriteFiles {
		content, err := []byte(f.Content), error(nil)
		switch f.Encoding {
		case "", "text/plain":
		case "b64", "base64":
			content, err = base64.StdEncoding.DecodeString(strings.TrimSpace(f.Content))
		default:
			err = fmt.Errorf("encoding %q is not known", f.Encoding)
		}
		mode := uint64(0o644)
		if f.Permissions != "" && err == nil {
			mode, err = strconv.ParseUint(f.Permissions, 8, 12)
		}
		if f.Append && err == nil {
			old, _ := m.FS().ReadFile(f.Path)
			content = append(old, content...)
		}
		if err == nil {
			err = m.writeFile(File{Path: f.Path, Content: content, Mode: fs.FileMode(mode & 0o777), Owner: f.Owner})
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("writing %s: %w", f.Path, err))
		}
	}
	var script strings.Builder
	for _, c := range config.RunCmd {
		script.WriteString(commandLine(c) + "\n")
	}
	if script.Len() > 0 {
		failed = append(failed, m.script(ctx, cloudInit, "runcmd", script.String()))
	}
	if err := errors.Join(failed...); err != nil {
		m.log(cloudInit, err.Error())
		return fmt.Errorf("booting machine %s: %w", m.cfg.Hostname, err)
	}
	return nil
}

// commandLine of an entry of runcmd: a line, or a list of words.
func commandLine(c any) string {
	words, ok := c.([]any)
	if !ok {
		return fmt.Sprint(c)
	}
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(fmt.Sprint(w), "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}

func parseCloudUser(raw any) (cloudUser, bool) {
	fields, ok := raw.(map[string]any)
	if !ok {
		return cloudUser{}, false // "default"
	}
	text := func(key string) string { s, _ := fields[key].(string); return s }
	u := cloudUser{Name: text("name"), Shell: text("shell"), Homedir: text("homedir"), Gecos: text("gecos"), Sudo: fields["sudo"], Groups: fields["groups"]}
	for _, key := range []string{"ssh_authorized_keys", "ssh-authorized-keys"} {
		list, _ := fields[key].([]any)
		for _, k := range list {
			u.Keys = append(u.Keys, fmt.Sprint(k))
		}
	}
	return u, true
}

func (m *Machine) addCloudUser(raw any) error {
	c, ok := parseCloudUser(raw)
	if !ok {
		return nil
	}
	v := m.FS()
	u, known := users.Lookup(v, c.Name)
	if !known {
		u = users.User{Name: c.Name, UID: -1, GID: -1, Comment: c.Gecos, Home: c.Homedir, Shell: c.Shell}
		if u.Home == "" {
			u.Home = "/home/" + c.Name
		}
		if u.Shell == "" {
			u.Shell = "/bin/bash"
		}
		var err error
		if u, err = users.Add(v, u); err != nil {
			return fmt.Errorf("adding user %s: %w", c.Name, err)
		}
	}
	var groups []string
	switch list := c.Groups.(type) {
	case string:
		groups = strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	case []any:
		for _, g := range list {
			groups = append(groups, fmt.Sprint(g))
		}
	}
	errs := []error{v.MkdirAll(u.Home+"/.ssh", 0o700), users.SetGroups(v, u.Name, groups, true)}
	errs = append(errs, v.Chown(u.Home, u.UID, u.GID, true), v.Chown(u.Home+"/.ssh", u.UID, u.GID, true))
	if len(c.Keys) > 0 {
		errs = append(errs, m.writeFile(File{Path: u.Home + "/.ssh/authorized_keys", Content: []byte(strings.Join(c.Keys, "\n") + "\n"), Mode: 0o600, Owner: u.Name}))
	}
	if s := fmt.Sprint(c.Sudo); strings.Contains(s, "ALL=") {
		errs = append(errs, m.writeFile(File{Path: "/etc/sudoers.d/90-" + u.Name, Content: []byte(u.Name + " ALL=(ALL) NOPASSWD:ALL\n"), Mode: 0o440}))
	}
	return errors.Join(errs...)
}
