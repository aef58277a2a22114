package cloudinit

import (
	"fmt"
	"mime"
	"strings"

	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

func (d *Data) archive(text string) error {
	var parts []struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	if err := plainyaml.Unmarshal([]byte(text), &parts); err != nil {
		return fmt.Errorf("reading the user data as #cloud-config-archive: %w", err)
	}
	for i, part := range parts {
		if err := d.addPart(part.Type, part.Content); err != nil {
			return fmt.Errorf("reading part %d: %w", i, err)
		}
	}
	return nil
}

// boundary returns the boundary of the parts of a MIME message, or "" if the text is not a MIME message.
func boundary(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		name, value, found := strings.Cut(line, ":")
		if !found || strings.ContainsAny(name, " #") {
			return ""
		}
		if strings.EqualFold(name, "Content-Type") {
			_, parameters, _ := mime.ParseMediaType(value)
			return parameters["boundary"]
		}
	}
	return ""
}

// multipart reads a MIME message with parts as cloud-init does: the first line that is not a header ends the headers of
// a part, whether it is empty or not.
func (d *Data) multipart(text string) error {
	parts := strings.Split("\n"+text, "\n--"+boundary(text))
	for i, part := range parts[1:] {
		if strings.HasPrefix(part, "--") {
			break
		}
		_, part, _ = strings.Cut(part, "\n")
		kind, encoding := "", ""
		for {
			line, rest, _ := strings.Cut(part, "\n")
			name, value, found := strings.Cut(line, ":")
			if !found || strings.ContainsAny(name, " #/") {
				break
			}
			switch strings.ToLower(name) {
			case "content-type":
				kind, _, _ = mime.ParseMediaType(value)
			case "content-transfer-encoding":
				encoding = strings.ToLower(strings.TrimSpace(value))
			}
			part = rest
		}
		if encoding == "base64" {
			decoded, err := decodeBase64(part)
			if err != nil {
				return fmt.Errorf("reading part %d: %w", i, err)
			}
			part = decoded
		}
		if err := d.addPart(kind, part); err != nil {
			return fmt.Errorf("reading part %d: %w", i, err)
		}
	}
	return nil
}

// addPart reads a part. The beginning of its content tells its form; its type only tells whether it is for cloud-init.
func (d *Data) addPart(kind, content string) error {
	switch kind {
	case "", "text/plain", "text/x-shellscript", "text/cloud-config":
		return d.add(content, false)
	}
	d.Unsupported = append(d.Unsupported, kind)
	return nil
}
