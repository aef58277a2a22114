package cloudinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"k8s.io/utils/ptr"
)

const unitDir = "/etc/systemd/system"

// ignition reads an Ignition configuration, as machines with Flatcar get it: files, units and users. It adds commands
// that start the enabled units, as the boot after Ignition does.
func (d *Data) ignition(text string) error {
	var c struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
		Storage struct {
			Files []struct {
				Path     string `json:"path"`
				Mode     *int   `json:"mode"`
				Contents struct {
					Source      string `json:"source"`
					Compression string `json:"compression"`
				} `json:"contents"`
			} `json:"files"`
		} `json:"storage"`
		Systemd struct {
			Units []struct {
				Name     string  `json:"name"`
				Enabled  bool    `json:"enabled"`
				Contents *string `json:"contents"`
				Dropins  []struct {
					Name     string `json:"name"`
					Contents string `json:"contents"`
				} `json:"dropins"`
			} `json:"units"`
		} `json:"systemd"`
		Passwd struct {
			Users []struct {
				Name              string   `json:"name"`
				Groups            []string `json:"groups"`
				Shell             string   `json:"shell"`
				SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
			} `json:"users"`
		} `json:"passwd"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("reading the user data as an Ignition configuration: %w", err)
	}
	if !strings.HasPrefix(c.Ignition.Version, "3.") {
		return fmt.Errorf("reading the user data as an Ignition configuration: version %q is not supported, 3.x is", c.Ignition.Version)
	}
	for _, f := range c.Storage.Files {
		content, err := dataURL(f.Contents.Source)
		if err == nil && f.Contents.Compression != "" {
			err = fmt.Errorf("compression %q is not supported", f.Contents.Compression)
		}
		if err == nil && !path.IsAbs(f.Path) {
			err = errors.New("the path is not absolute")
		}
		if err != nil {
			return fmt.Errorf("reading the file %q of the Ignition configuration: %w", f.Path, err)
		}
		mode := fmt.Sprintf("%o", ptr.Deref(f.Mode, 0o644))
		d.Files = append(d.Files, File{Path: f.Path, Content: content, Permissions: mode})
	}
	var start [][]string
	for _, u := range c.Systemd.Units {
		if u.Name == "" || strings.ContainsAny(u.Name, "/\x00") {
			return fmt.Errorf("reading the Ignition configuration: %q is no name of a unit", u.Name)
		}
		if u.Contents != nil {
			d.Files = append(d.Files, File{Path: path.Join(unitDir, u.Name), Content: *u.Contents})
		}
		for _, drop := range u.Dropins {
			d.Files = append(d.Files, File{Path: path.Join(unitDir, u.Name+".d", path.Base(drop.Name)), Content: drop.Contents})
		}
		if u.Enabled {
			start = append(start, []string{"systemctl", "enable", u.Name}, []string{"systemctl", "restart", "--no-block", u.Name})
		}
	}
	d.RunCmd = append(append(d.RunCmd, []string{"systemctl", "daemon-reload"}), start...)
	for _, u := range c.Passwd.Users {
		d.Users = append(d.Users, User{Name: u.Name, Groups: u.Groups, Shell: u.Shell, SSHAuthorizedKeys: u.SSHAuthorizedKeys})
	}
	return nil
}

// dataURL returns the content of a data: URL (RFC 2397). An empty URL means an empty file.
func dataURL(source string) (string, error) {
	if source == "" {
		return "", nil
	}
	source, isData := strings.CutPrefix(source, "data:")
	about, data, found := strings.Cut(source, ",")
	if !found || !isData {
		return "", errors.New("only data: URLs are supported")
	}
	if strings.HasSuffix(about, ";base64") {
		return decodeBase64(data)
	}
	return url.PathUnescape(data)
}
