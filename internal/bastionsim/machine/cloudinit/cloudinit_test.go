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
	for name, c := range map[string]struct {
		data string
		want []string // what it has to have, in this order
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
		"relative path":     {data: "#cloud-config\nwrite_files: [{path: a}]", err: "write_files[0]"},
		"user with no name": {data: "#cloud-config\nusers: [{shell: /bin/sh}]", err: "users[0]"},
		"command is a map":  {data: "#cloud-config\nruncmd: [{a: b}]", err: "runcmd[0]"},
		"config": {data: config, want: []string{
			`"Unsupported":["package_update"]`, `"path":"/etc/a b","content":"hi"`, `"owner":"root:root","permissions":"0600"`, `"name":"gardener"`, `"groups":["adm","sudo"]`,
			`"sudo":["ALL=(ALL) NOPASSWD:ALL"]`, `"ssh_authorized_keys":["ssh-ed25519 AAAA it's"]`, `["sh","-c","echo $HOME"]`, `["echo","$HOME","it's"]`,
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
