package cloudinit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const config = `#cloud-config
package_update: true
users:
- default
- name: gardener
  sudo: ALL=(ALL) NOPASSWD:ALL
  groups: [adm, sudo]
  ssh_authorized_keys: ["ssh-ed25519 AAAA it's"]
write_files:
- {path: /etc/a b, content: aGk=, encoding: b64, permissions: "0600", owner: "root:root"}
runcmd:
- echo $HOME
- [echo, "$HOME", "it's"]
`
	// The first part is like that of MemoryOne, without an empty line after the headers.
	const message = `Content-Type: multipart/mixed; boundary="==B=="
MIME-Version: 1.0
--==B==
Content-Type: text/x-vsmp; section=vsmp
system_memory=6x
--==B==
Content-Type: text/x-shellscript
#!/bin/sh
echo a
--==B==
Content-Type: text/x-shellscript
Content-Transfer-Encoding: base64

IyEvYmluL3NoCmVjaG8gYgo=
--==B==--
`
	for name, c := range map[string]struct {
		data string
		want []string // parts of the JSON of Data, in this order
		err  string
	}{
		"nothing":           {},
		"script":            {data: "#!/bin/bash\necho a\n", want: []string{"echo a"}},
		"options":           {data: "#!/bin/bash -eu\necho a\n", want: []string{"set -eu", "echo a"}},
		"env":               {data: "#!/usr/bin/env bash\r\necho a\r\n", want: []string{"echo a"}},
		"python":            {data: "#!/usr/bin/python3\n", err: "no interpreter"},
		"neither":           {data: "echo a", err: "begins neither"},
		"too large":         {data: "#!/bin/sh\n" + strings.Repeat("x", MaxUserData), err: "more than"},
		"bad yaml":          {data: "#cloud-config\n:\n  - {", err: "#cloud-config"},
		"aliases":           {data: "#cloud-config\na: &a [b]\nruncmd: [*a]", err: "aliases are not allowed"},
		"archive's aliases": {data: "#cloud-config-archive\n- &a {content: b}\n- *a", err: "aliases are not allowed"},
		"relative path":     {data: "#cloud-config\nwrite_files: [{path: a}]", err: "write_files[0]"},
		"user with no name": {data: "#cloud-config\nusers: [{shell: /bin/sh}]", err: "users[0]"},
		"command is a map":  {data: "#cloud-config\nruncmd: [{a: b}]", err: "runcmd[0]"},
		"archive": {data: "#cloud-config-archive\n- {type: text/x-shellscript, content: \"#!/bin/sh\\necho a\\n\"}\n" +
			"- {content: \"#cloud-config\\nruncmd: [b]\"}\n- {type: text/jinja2, content: c}\n",
			want: []string{`"Unsupported":["text/jinja2"]`, `["sh","-c","b"]`, "echo a"}},
		"archive in an archive":   {data: "#cloud-config-archive\n- {content: \"#cloud-config-archive\\n[]\"}", err: "reading part 0"},
		"archive that is no list": {data: "#cloud-config-archive\na: b", err: "#cloud-config-archive"},
		"message":                 {data: message, want: []string{`"Unsupported":["text/x-vsmp"]`, "echo a", "echo b"}},
		"message with bad base64": {data: strings.Replace(message, "IyEv", "?", 1), err: "reading part 2"},
		"message without parts":   {data: "Content-Type: multipart/mixed; boundary=x\n\n"},
		"Ignition": {data: `{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,b%20c"},"mode":384},
			{"path":"/d","contents":{"source":"data:;base64,ZQ=="}}]},
			"systemd":{"units":[{"name":"f.service","enabled":true,"contents":"g","dropins":[{"name":"h.conf","contents":"i"}]},
			{"name":"j.service"}]},
			"passwd":{"users":[{"name":"k","sshAuthorizedKeys":["l"]}]}}`,
			want: []string{
				`"path":"/a","content":"b c"`, `"permissions":"600"`, `"path":"/d","content":"e"`, `"permissions":"644"`,
				`"path":"/etc/systemd/system/f.service","content":"g"`,
				`"path":"/etc/systemd/system/f.service.d/h.conf","content":"i"`, `"name":"k"`, `["l"]`,
				`["systemctl","daemon-reload"],["systemctl","enable","f.service"],["systemctl","restart","--no-block","f.service"]]`,
			}},
		"Ignition of another version": {data: `{"ignition":{"version":"2.2.0"}}`, err: `version "2.2.0"`},
		"Ignition that is no JSON":    {data: `{"ignition"`, err: "Ignition"},
		"Ignition from elsewhere": {data: `{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/a",` +
			`"contents":{"source":"https://example.com"}}]}}`, err: "only data: URLs"},
		"Ignition, compressed": {data: `{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/a",` +
			`"contents":{"source":"data:,a","compression":"gzip"}}]}}`, err: "compression"},
		"Ignition, a relative path": {
			data: `{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"a","contents":{"source":"data:,a"}}]}}`, err: "not absolute"},
		"Ignition, a unit in a path": {data: `{"ignition":{"version":"3.0.0"},"systemd":{"units":[{"name":"../a","contents":"b"}]}}`,
			err: "no name of a unit"},
		"config": {data: config, want: []string{
			`"Unsupported":["package_update"]`, `"path":"/etc/a b","content":"hi"`, `"owner":"root:root","permissions":"0600"`,
			`"name":"gardener"`, `"groups":["adm","sudo"]`,
			`"sudo":["ALL=(ALL) NOPASSWD:ALL"]`, `"ssh_authorized_keys":["ssh-ed25519 AAAA it's"]`, `["sh","-c","echo $HOME"]`,
			`["echo","$HOME","it's"]`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(c.data))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			encoder := json.NewEncoder(&b)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(got); err != nil {
				t.Fatal(err)
			}
			rest := b.String()
			for _, part := range c.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("%q is not in its place in:\n%s", part, b.String())
				}
				rest = after
			}
		})
	}
}

// FuzzParse verifies that Parse returns an error, or data that is hardly larger than its input.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"#!/bin/sh\n", "#cloud-config\nruncmd: [a]", "#cloud-config-archive\n- {content: a}",
		"Content-Type: multipart/mixed; boundary=x\n--x\n\n#!/bin/sh\n--x--",
		`{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,b"}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := Parse(data)
		if err != nil {
			return
		}
		size := 0
		for _, file := range parsed.Files {
			size += len(file.Content)
		}
		for _, script := range parsed.Scripts {
			size += len(script)
		}
		if size > len(data)+8*len(parsed.Scripts) {
			t.Errorf("%d bytes of user data are %d of files and scripts", len(data), size)
		}
	})
}
