package cloudinit

import (
	"fmt"
	"mime"
	"strings"

	"sigs.k8s.io/yaml"
)

// archive reads a #cloud-config-archive: a list of parts.
func (d *Data) archive(text string) error {
	var parts []struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	if err := yaml.Unmarshal([]byte(text), &parts); err != nil {
		return fmt.Errorf("reading the user data as #cloud-config-archive: %w", err)
	}
	for i, part := range parts {
		if err := d.addPart(part.Type, part.Content); err != nil {
			return fmt.Errorf("reading part %d: %w", i, err)
		}
	}
	return nil
}

func isMultipart(text string) bool { return boundary(text) != "" }

// boundary returns what separates the parts of a MIME message; "" if the text is none.
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

// multipart reads a MIME message with parts, as cloud-init does: the line without a header in it ends a part's headers,
// whether it is empty or not.
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

// addPart reads a part. How it begins says what it is; its type says whether it is for cloud-init at all.
func (d *Data) addPart(kind, content string) error {
	switch kind {
	case "", "text/plain", "text/x-shellscript", "text/cloud-config":
		return d.add(content, false)
	}
	d.Unsupported = append(d.Unsupported, kind)
	return nil
}
