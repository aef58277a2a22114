package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

const (
	// maxPacked is the maximum size of an archive, maxUnpacked that of its content, maxFiles the maximum number of files.
	maxPacked, maxUnpacked = 4 << 20, 20 << 20
	maxFiles               = 1000
)

// load reads the chart in an archive, and returns an error if it exceeds the limits.
func load(archive []byte) (*chart.Chart, error) {
	if len(archive) > maxPacked {
		return nil, fmt.Errorf("the archive has %d bytes, %d are allowed", len(archive), maxPacked)
	}
	if err := checkArchive(archive); err != nil {
		return nil, err
	}
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("loading it: %w", err)
	}
	return c, checkSchema(c)
}

func checkArchive(archive []byte) error {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("unpacking it, a .tgz that helm package makes is expected: %w", err)
	}
	limited := &io.LimitedReader{R: unpacked, N: maxUnpacked + 1}
	files := tar.NewReader(limited)
	for count := 0; ; count++ {
		_, err := files.Next()
		switch {
		case limited.N == 0:
			return fmt.Errorf("it has more than %d bytes unpacked", maxUnpacked)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("unpacking it, a .tgz that helm package makes is expected: %w", err)
		case count == maxFiles:
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
	}
}

// metaSchemas are the schemas that Helm's validator has built in. It would read any other one from the network.
var metaSchemas = []string{
	"http://json-schema.org/draft-04/schema", "http://json-schema.org/draft-06/schema", "http://json-schema.org/draft-07/schema",
	"https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema",
}

// checkSchema refuses a values schema with external references: Helm's validator would read files and URLs.
func checkSchema(c *chart.Chart) error {
	if len(c.Schema) > 0 {
		var schema any
		if err := json.Unmarshal(c.Schema, &schema); err != nil {
			return fmt.Errorf("reading values.schema.json of chart %s: %w", c.Name(), err)
		}
		if err := checkReferences(schema); err != nil {
			return fmt.Errorf("reading values.schema.json of chart %s: %w", c.Name(), err)
		}
	}
	for _, dependency := range c.Dependencies() {
		if err := checkSchema(dependency); err != nil {
			return err
		}
	}
	return nil
}

func checkReferences(schema any) error {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			if err := checkReferences(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, value := range s {
			text, isText := value.(string)
			switch {
			case isText && key == "$schema" && !slices.Contains(metaSchemas, strings.TrimSuffix(text, "#")):
				return fmt.Errorf("$schema is %q, one of %v is allowed", text, metaSchemas)
			case isText && strings.HasSuffix(strings.ToLower(key), "ref") && strings.HasPrefix(key, "$") && !strings.HasPrefix(text, "#"):
				return fmt.Errorf("%s is %q, only references within the schema are allowed", key, text)
			}
			if err := checkReferences(value); err != nil {
				return err
			}
		}
	}
	return nil
}
