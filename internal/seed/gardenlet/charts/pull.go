package charts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/gardenlite/gardenlite/internal/ociregistry"
)

const (
	// mediaType is Helm's media type for a chart in an OCI artifact.
	mediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// layoutScheme is the prefix of references to a folder with an OCI layout, instead of a registry.
	layoutScheme = "layout://"
	pullTimeout  = 30 * time.Second
)

// Source describes where a chart is, and how to pull it.
type Source struct {
	// Reference names the artifact as OCIRepository.GetURL does. With the prefix layout:// it names a folder in Layouts.
	Reference string
	// Layouts is the folder that contains OCI layouts, empty if there is none.
	Layouts string
	// PullSecret is a Docker configuration with the credentials for the registry, if it needs any.
	PullSecret []byte
	// CABundle has the CA certificates of the registry in PEM, which replace those of the machine.
	CABundle []byte

	// dial is the address of the registry in tests.
	dial string
}

// Pull returns a chart as an archive.
func Pull(ctx context.Context, source Source) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	target, tag, end, err := source.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", source.Reference, err)
	}
	defer end()
	_, data, err := oras.FetchBytes(ctx, target, tag, oras.FetchBytesOptions{MaxBytes: ociregistry.MaxManifest})
	if err != nil {
		return nil, fmt.Errorf("pulling the manifest of %s: %w", source.Reference, err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, fmt.Errorf("reading the manifest of %s: %w", source.Reference, err)
	}
	i := slices.IndexFunc(manifest.Layers, func(layer ocispec.Descriptor) bool { return layer.MediaType == mediaType })
	if i < 0 {
		return nil, fmt.Errorf("%s is no chart: it has no layer of the type %s; push it with helm push", source.Reference, mediaType)
	}
	if size := manifest.Layers[i].Size; size > maxPacked {
		return nil, fmt.Errorf("the chart of %s has %d bytes, %d are allowed", source.Reference, size, maxPacked)
	}
	archive, err := content.FetchAll(ctx, target, manifest.Layers[i])
	if err != nil {
		return nil, fmt.Errorf("pulling the chart of %s: %w", source.Reference, err)
	}
	return archive, nil
}

// open opens the registry or the layout. It returns the tag or digest in it, and a function that releases it.
func (s Source) open(ctx context.Context) (oras.ReadOnlyTarget, string, func(), error) {
	if name, ok := strings.CutPrefix(s.Reference, layoutScheme); ok {
		return s.openLayout(ctx, name)
	}
	repository, err := ociregistry.Open(s.Reference)
	if err != nil {
		return nil, "", nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if len(s.CABundle) > 0 {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(s.CABundle) {
			return nil, "", nil, errors.New("there is no certificate in the CA bundle")
		}
	}
	if s.dial != "" {
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.dial)
		}
	}
	client := &auth.Client{Client: &http.Client{Transport: transport}, Cache: auth.NewCache()}
	if len(s.PullSecret) > 0 {
		store, err := credentials.NewMemoryStoreFromDockerConfig(s.PullSecret)
		if err != nil {
			return nil, "", nil, errors.New("the pull secret is no Docker configuration")
		}
		client.Credential = credentials.Credential(store)
	}
	repository.Client = client
	return repository, repository.Reference.Reference, transport.CloseIdleConnections, nil
}

// openLayout opens a folder in Layouts. It reads nothing outside of that folder.
func (s Source) openLayout(ctx context.Context, name string) (oras.ReadOnlyTarget, string, func(), error) {
	if s.Layouts == "" {
		return nil, "", nil, errors.New("this gardenlet has no folder of OCI layouts")
	}
	folder, tag, ok := strings.Cut(name, "@")
	if !ok {
		folder, tag, ok = strings.Cut(name, ":")
	}
	if !ok || folder == "" || tag == "" || !filepath.IsLocal(folder) || filepath.Base(folder) != folder {
		return nil, "", nil, fmt.Errorf("it must look like %sNAME:TAG, with the name of a folder in %s", layoutScheme, s.Layouts)
	}
	root, err := os.OpenRoot(filepath.Join(s.Layouts, folder))
	if err != nil {
		return nil, "", nil, err
	}
	store, err := oci.NewFromFS(ctx, root.FS())
	if err != nil {
		return nil, "", nil, errors.Join(err, root.Close())
	}
	return store, tag, func() { _ = root.Close() }, nil
}
