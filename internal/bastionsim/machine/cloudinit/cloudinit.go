// Package cloudinit makes of a machine's user data the script that is run at the first boot: of a script with "#!" itself,
// of a #cloud-config one that does the same. It imports nothing of the project, and runs nothing.
package cloudinit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// MaxUserData is how many bytes user data may have.
const MaxUserData = 64 << 10

// Script is what user data has a machine do; empty if there is nothing to do.
func Script(userData []byte) (string, error) {
	if len(userData) > MaxUserData {
		return "", fmt.Errorf("reading the user data: %d bytes are more than the %d that it may have", len(userData), MaxUserData)
	}
	text := strings.ReplaceAll(string(bytes.TrimLeft(userData, " \t\r\n")), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	switch {
	case text == "":
		return "", nil
	case strings.HasPrefix(first, "#!"):
		options, err := shebang(strings.TrimSpace(first[2:]))
		return options + "\n" + rest, err
	case strings.HasPrefix(first, "#cloud-config"):
		return config(text)
	default:
		return "", errors.New(`reading the user data: it begins neither with "#!" nor with "#cloud-config"`)
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

// cloudConfig is the part of cloud-config that is supported.
type cloudConfig struct {
	Users      []any       `json:"users"`
	WriteFiles []writeFile `json:"write_files"`
	BootCmd    []any       `json:"bootcmd"`
	RunCmd     []any       `json:"runcmd"`
}

type writeFile struct {
	Path        string `json:"path"`
	Content     string `json:"content"`
	Encoding    string `json:"encoding"`
	Owner       string `json:"owner"`
	Permissions string `json:"permissions"`
	Append      bool   `json:"append"`
}

// user is an entry of users. Sudo is a rule, several, or false.
type user struct {
	Name              string   `json:"name"`
	Gecos             string   `json:"gecos"`
	Shell             string   `json:"shell"`
	Groups            any      `json:"groups"`
	Sudo              any      `json:"sudo"`
	SSHAuthorizedKeys []string `json:"ssh_authorized_keys"`
}

// config turns cloud-config into a script. Keys that are not supported are told in the log, as cloud-init does.
func config(text string) (string, error) {
	var c cloudConfig
	var keys map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(text), &keys), yaml.Unmarshal([]byte(text), &c)); err != nil {
		return "", fmt.Errorf("reading the user data as #cloud-config: %w", err)
	}
	var b strings.Builder
	for _, key := range unsupported(keys) {
		fmt.Fprintf(&b, "echo %s >&2\n", quote("cloud-init: "+key+" is not supported and left out"))
	}
	if err := commands(&b, "bootcmd", c.BootCmd); err != nil {
		return "", err
	}
	for i, file := range c.WriteFiles {
		if err := file.script(&b); err != nil {
			return "", fmt.Errorf("reading write_files[%d] of the user data: %w", i, err)
		}
	}
	for i, entry := range c.Users {
		if err := userScript(&b, entry); err != nil {
			return "", fmt.Errorf("reading users[%d] of the user data: %w", i, err)
		}
	}
	if err := commands(&b, "runcmd", c.RunCmd); err != nil {
		return "", err
	}
	return b.String(), nil
}

func unsupported(keys map[string]any) []string {
	var names []string
	for key := range keys {
		if !slices.Contains([]string{"users", "write_files", "bootcmd", "runcmd"}, key) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

func (f writeFile) script(b *strings.Builder) error {
	content := []byte(f.Content)
	switch f.Encoding {
	case "", "text/plain":
	case "b64", "base64":
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.Content), ""))
		if err != nil {
			return err
		}
		content = decoded
	default:
		return fmt.Errorf("encoding %q is not supported", f.Encoding)
	}
	if !path.IsAbs(f.Path) {
		return fmt.Errorf("path %q is not absolute", f.Path)
	}
	redirect := ">"
	if f.Append {
		redirect = ">>"
	}
	name := quote(f.Path)
	fmt.Fprintf(b, "mkdir -p %s\n", quote(path.Dir(f.Path)))
	fmt.Fprintf(b, "echo %s | base64 -d %s %s\n", quote(base64.StdEncoding.EncodeToString(content)), redirect, name)
	if f.Permissions != "" {
		fmt.Fprintf(b, "chmod %s %s\n", quote(f.Permissions), name)
	}
	if f.Owner != "" {
		fmt.Fprintf(b, "chown %s %s\n", quote(f.Owner), name)
	}
	return nil
}

func userScript(b *strings.Builder, entry any) error {
	if name, ok := entry.(string); ok {
		if name != "default" {
			fmt.Fprintf(b, "id -u %s >/dev/null 2>&1 || useradd -m %s\n", quote(name), quote(name))
		}
		return nil
	}
	data, err := yaml.Marshal(entry)
	if err != nil {
		return err
	}
	var u user
	if err := yaml.Unmarshal(data, &u); err != nil {
		return err
	}
	if u.Name == "" {
		return errors.New("it has no name")
	}
	add := "useradd -m"
	if u.Shell != "" {
		add += " -s " + quote(u.Shell)
	}
	if u.Gecos != "" {
		add += " -c " + quote(u.Gecos)
	}
	if groups := list(u.Groups); len(groups) > 0 {
		add += " -G " + quote(strings.Join(groups, ","))
	}
	name := quote(u.Name)
	fmt.Fprintf(b, "id -u %s >/dev/null 2>&1 || %s %s\n", name, add, name)
	if len(u.SSHAuthorizedKeys) > 0 {
		home := quote("/home/" + u.Name)
		if u.Name == "root" {
			home = "/root"
		}
		fmt.Fprintf(b, "mkdir -p %s/.ssh\nchmod 700 %s/.ssh\n", home, home)
		fmt.Fprintf(b, "printf '%%s\\n' %s >> %s/.ssh/authorized_keys\n", quote(strings.Join(u.SSHAuthorizedKeys, "\n")), home)
		fmt.Fprintf(b, "chmod 600 %s/.ssh/authorized_keys\nchown -R %s: %s/.ssh\n", home, name, home)
	}
	rules := list(u.Sudo)
	if rule, ok := u.Sudo.(string); ok {
		rules = []string{rule}
	}
	for _, rule := range rules {
		fmt.Fprintf(b, "mkdir -p /etc/sudoers.d\necho %s >> /etc/sudoers.d/90-cloud-init-users\n", quote(u.Name+" "+rule))
	}
	return nil
}

// list is what cloud-config allows as a list or as a string with commas.
func list(value any) (all []string) {
	switch value := value.(type) {
	case string:
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, item)
			}
		}
	case []any:
		for _, item := range value {
			all = append(all, strings.TrimSpace(fmt.Sprint(item)))
		}
	}
	return all
}

// commands are strings for the shell, or lists of words.
func commands(b *strings.Builder, key string, all []any) error {
	for i, command := range all {
		switch command := command.(type) {
		case string:
			fmt.Fprintf(b, "( %s\n)\n", command)
		case []any:
			words := make([]string, len(command))
			for i, word := range command {
				words[i] = quote(fmt.Sprint(word))
			}
			b.WriteString(strings.Join(words, " ") + "\n")
		default:
			return fmt.Errorf("reading %s[%d] of the user data: neither a string nor a list", key, i)
		}
	}
	return nil
}

// quote makes a word of the shell of a string.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
