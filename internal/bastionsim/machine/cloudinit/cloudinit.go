// Package cloudinit reads a machine's user data: a script with "#!", a #cloud-config, several of them in a
// #cloud-config-archive or a MIME message with parts, or an Ignition configuration. It imports nothing of the project, and
// runs nothing.
package cloudinit

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

// MaxUserData is how many bytes user data may have.
const MaxUserData = 64 << 10

// Data is parsed user data. A machine applies the fields in this order.
type Data struct {
	// Unsupported are keys of cloud-config and types of parts, which are ignored.
	Unsupported []string
	BootCmd     [][]string
	Files       []File
	Users       []User
	// RunCmd are commands with their arguments.
	RunCmd [][]string
	// Scripts are for the shell.
	Scripts []string
}

// File is an entry of write_files.
type File struct {
	Path        string `json:"path"`
	Content     string `json:"content"`
	Encoding    string `json:"encoding"`
	Owner       string `json:"owner"`
	Permissions string `json:"permissions"`
	Append      bool   `json:"append"`
}

// User is an entry of users.
type User struct {
	Name              string   `json:"name"`
	Gecos             string   `json:"gecos"`
	Shell             string   `json:"shell"`
	Groups            words    `json:"groups"`
	Sudo              rules    `json:"sudo"`
	SSHAuthorizedKeys []string `json:"ssh_authorized_keys"`
}

// Parse reads user data.
func Parse(userData []byte) (*Data, error) {
	if len(userData) > MaxUserData {
		return nil, fmt.Errorf("reading the user data: %d bytes are more than the %d that it may have", len(userData), MaxUserData)
	}
	d := &Data{}
	return d, d.add(string(userData), true)
}

// add reads user data of any form. whole is false for a part, which must not be an archive, a MIME message or Ignition.
func (d *Data) add(text string, whole bool) error {
	text = strings.ReplaceAll(strings.TrimLeft(text, " \t\r\n"), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(first, "#!"):
		options, err := shebang(strings.TrimSpace(first[2:]))
		d.Scripts = append(d.Scripts, options+"\n"+rest)
		return err
	case whole && strings.HasPrefix(first, "#cloud-config-archive"):
		return d.archive(text)
	case whole && boundary(text) != "":
		return d.multipart(text)
	case strings.HasPrefix(first, "#cloud-config") && !strings.HasPrefix(first, "#cloud-config-"):
		return d.config(text)
	case whole && strings.HasPrefix(first, "{"):
		return d.ignition(text)
	default:
		return errors.New(`reading the user data: it begins neither with "#!" nor with "#cloud-config", and is neither a ` +
			`MIME message with parts nor an Ignition configuration`)
	}
}

// shebang checks that a script is for a shell, and returns the line that sets the shell's options.
func shebang(line string) (string, error) {
	fields := strings.Fields(line)
	if len(fields) > 1 && path.Base(fields[0]) == "env" {
		fields = fields[1:]
	}
	if len(fields) == 0 || !slices.Contains([]string{"sh", "bash", "dash"}, path.Base(fields[0])) {
		return "", fmt.Errorf("reading the user data: a machine has no interpreter %q; write it for /bin/bash or /bin/sh", line)
	}
	if len(fields) == 1 {
		return "", nil
	}
	return "set " + strings.Join(fields[1:], " "), nil
}

func (d *Data) config(text string) error {
	var c struct {
		Users      []json.RawMessage `json:"users"`
		WriteFiles []File            `json:"write_files"`
		BootCmd    []any             `json:"bootcmd"`
		RunCmd     []any             `json:"runcmd"`
	}
	var keys map[string]any
	if err := errors.Join(plainyaml.Unmarshal([]byte(text), &keys), plainyaml.Unmarshal([]byte(text), &c)); err != nil {
		return fmt.Errorf("reading the user data as #cloud-config: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains([]string{"users", "write_files", "bootcmd", "runcmd"}, key) {
			d.Unsupported = append(d.Unsupported, key)
		}
	}
	for i, f := range c.WriteFiles {
		if err := f.decode(); err != nil {
			return fmt.Errorf("reading write_files[%d] of the user data: %w", i, err)
		}
		d.Files = append(d.Files, f)
	}
	for i, entry := range c.Users {
		var u User
		if json.Unmarshal(entry, &u.Name) != nil { // an entry is a name alone, or an object
			if err := json.Unmarshal(entry, &u); err != nil || u.Name == "" {
				return fmt.Errorf("reading users[%d] of the user data: %w", i, cmp.Or(err, errors.New("it has no name")))
			}
		}
		if u.Name != "default" {
			d.Users = append(d.Users, u)
		}
	}
	boot, errBoot := commands("bootcmd", c.BootCmd)
	run, errRun := commands("runcmd", c.RunCmd)
	d.BootCmd, d.RunCmd = append(d.BootCmd, boot...), append(d.RunCmd, run...)
	return errors.Join(errBoot, errRun)
}

func (f *File) decode() error {
	switch f.Encoding {
	case "", "text/plain":
	case "b64", "base64":
		var err error
		if f.Content, err = decodeBase64(f.Content); err != nil {
			return err
		}
	default:
		return fmt.Errorf("encoding %q is not supported", f.Encoding)
	}
	if !path.IsAbs(f.Path) {
		return fmt.Errorf("path %q is not absolute", f.Path)
	}
	return nil
}

// decodeBase64 decodes text after removing its white space.
func decodeBase64(text string) (string, error) {
	decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	return string(decoded), err
}

// commands returns the words of each command: "sh -c" before a string, and a list as it is.
func commands(key string, all []any) ([][]string, error) {
	var out [][]string
	for i, command := range all {
		switch command := command.(type) {
		case string:
			out = append(out, []string{"sh", "-c", command})
		case []any:
			args := make([]string, len(command))
			for i, word := range command {
				args[i] = fmt.Sprint(word)
			}
			out = append(out, args)
		default:
			return nil, fmt.Errorf("reading %s[%d] of the user data: neither a string nor a list", key, i)
		}
	}
	return out, nil
}

// words is a JSON list, or a string with commas.
type words []string

// UnmarshalJSON reads both forms.
func (w *words) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*[]string)(w))
	}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*w = append(*w, word)
		}
	}
	return nil
}

// rules is a JSON list, one rule, or false, which means no rules.
type rules []string

// UnmarshalJSON reads all forms.
func (r *rules) UnmarshalJSON(data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	switch value := value.(type) {
	case string:
		*r = rules{value}
	case []any:
		return json.Unmarshal(data, (*[]string)(r))
	}
	return nil
}
