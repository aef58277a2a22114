// Package usercontexts writes contexts of a landscape's clusters into the user's own kubeconfig, the first file of
// KUBECONFIG or else ~/.kube/config, and removes them. Each entry names the landscape that it belongs to, in an
// extension as other tools write, so that no entry of another tool or of another landscape is replaced or removed. It
// may import internal/statedir.
package usercontexts

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// extension is the name of the extension of an entry that has its Owner.
const extension = "gardenlite"

// Owner is what entries of a kubeconfig belong to.
type Owner struct {
	// Dir is the state directory of the landscape.
	Dir string `json:"dir"`
	// Cluster is "seed NAME" or "shoot PROJECT/NAME", empty for the garden.
	Cluster string `json:"cluster,omitempty"`
}

// ownerOf returns the owner that an entry names, the zero Owner if it names none.
func ownerOf(extensions map[string]runtime.Object) (o Owner) {
	if unknown, ok := extensions[extension].(*runtime.Unknown); ok {
		_ = json.Unmarshal(unknown.Raw, &o) // what is not understood is another tool's
	}
	return o
}

func (o Owner) mark(extensions map[string]runtime.Object) (map[string]runtime.Object, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	marked := maps.Clone(extensions)
	if marked == nil {
		marked = map[string]runtime.Object{}
	}
	marked[extension] = &runtime.Unknown{Raw: data, ContentType: runtime.ContentTypeJSON}
	return marked, nil
}

// Set adds the clusters, users and contexts of a kubeconfig to the user's own one, makes its current context the
// current one, and returns the path of the file. It fails if the user's kubeconfig has an entry of the same name that
// is not the landscape's.
func (o Owner) Set(config *clientcmdapi.Config) (file string, err error) {
	access := clientcmd.NewDefaultPathOptions()
	own, err := access.GetStartingConfig()
	if err != nil {
		return "", fmt.Errorf("reading your kubeconfig: %w", err)
	}
	all := Owner{Dir: o.Dir}.entriesIn(own, func(found Owner) bool {
		return found.Dir == o.Dir || found.Dir != "" && isGone(found.Dir)
	})
	check := func(kind, name string, exists, owned bool) {
		if err == nil && exists && !owned {
			err = fmt.Errorf(
				"your kubeconfig %s has a %s %q that is not of the landscape in %s: rename or delete that one first",
				access.GetDefaultFilename(), kind, name, o.Dir)
		}
	}
	// ModifyConfig writes an entry back into the file that it was read from, which is the landscape's.
	for name, entry := range config.Contexts {
		check("context", name, own.Contexts[name] != nil, all.contexts.Has(name))
		entry.LocationOfOrigin, own.Contexts[name] = "", entry
	}
	for name, cluster := range config.Clusters {
		check("cluster", name, own.Clusters[name] != nil, all.clusters.Has(name))
		cluster.LocationOfOrigin, own.Clusters[name] = "", cluster
	}
	for name, user := range config.AuthInfos {
		check("user", name, own.AuthInfos[name] != nil, all.users.Has(name))
		user.LocationOfOrigin, own.AuthInfos[name] = "", user
	}
	if err == nil {
		err = o.markAll(config)
	}
	if err != nil {
		return "", err
	}
	own.CurrentContext = config.CurrentContext
	if err := clientcmd.ModifyConfig(access, *own, true); err != nil {
		return "", fmt.Errorf("writing your kubeconfig: %w", err)
	}
	return access.GetDefaultFilename(), nil
}

func (o Owner) markAll(config *clientcmdapi.Config) (err error) {
	mark := func(extensions *map[string]runtime.Object) {
		if err == nil {
			*extensions, err = o.mark(*extensions)
		}
	}
	for _, entry := range config.Contexts {
		mark(&entry.Extensions)
	}
	for _, cluster := range config.Clusters {
		mark(&cluster.Extensions)
	}
	for _, user := range config.AuthInfos {
		mark(&user.Extensions)
	}
	return err
}

// Remove removes what belongs to the owner from the user's kubeconfig, also as the current context, and returns the
// names of the contexts. Without a cluster that is everything of the landscape, also what the user has copied from its
// kubeconfigs, by their certificate authorities, so call it before the state directory is deleted.
func (o Owner) Remove() (contexts []string, err error) {
	access := clientcmd.NewDefaultPathOptions()
	own, err := access.GetStartingConfig()
	if err != nil {
		return nil, fmt.Errorf("reading your kubeconfig: %w", err)
	}
	found := o.entriesIn(own, func(found Owner) bool {
		return found.Dir == o.Dir && (o.Cluster == "" || found.Cluster == o.Cluster)
	})
	if found.empty() {
		return nil, nil
	}
	maps.DeleteFunc(own.Contexts, func(name string, _ *clientcmdapi.Context) bool { return found.contexts.Has(name) })
	for _, entry := range own.Contexts { // another context of the user needs them
		found.clusters.Delete(entry.Cluster)
		found.users.Delete(entry.AuthInfo)
	}
	maps.DeleteFunc(own.Clusters, func(name string, _ *clientcmdapi.Cluster) bool { return found.clusters.Has(name) })
	maps.DeleteFunc(own.AuthInfos, func(name string, _ *clientcmdapi.AuthInfo) bool { return found.users.Has(name) })
	if found.contexts.Has(own.CurrentContext) {
		own.CurrentContext = ""
	}
	if err := clientcmd.ModifyConfig(access, *own, true); err != nil {
		return nil, fmt.Errorf("writing your kubeconfig: %w", err)
	}
	return slices.Sorted(maps.Keys(found.contexts)), nil
}

// entries are names of entries of a kubeconfig.
type entries struct{ contexts, clusters, users sets.Set[string] }

func (e entries) empty() bool { return e.contexts.Len()+e.clusters.Len()+e.users.Len() == 0 }

// isGone reports whether a landscape's state directory does not exist any more.
func isGone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// entriesIn returns the entries whose owner is one of those wanted and, for a whole landscape, those whose cluster has
// a certificate authority of it.
func (o Owner) entriesIn(config *clientcmdapi.Config, wanted func(Owner) bool) entries {
	found := entries{sets.New[string](), sets.New[string](), sets.New[string]()}
	isOwn := func(*clientcmdapi.Cluster) bool { return false }
	if o.Cluster == "" {
		isOwn = hasAuthorityOf(o.Dir)
	}
	for name, cluster := range config.Clusters {
		if wanted(ownerOf(cluster.Extensions)) || isOwn(cluster) {
			found.clusters.Insert(name)
		}
	}
	for name, user := range config.AuthInfos {
		if wanted(ownerOf(user.Extensions)) {
			found.users.Insert(name)
		}
	}
	for name, entry := range config.Contexts {
		cluster := config.Clusters[entry.Cluster]
		copied := cluster != nil && isOwn(cluster)
		if copied {
			found.users.Insert(entry.AuthInfo)
		}
		if copied || wanted(ownerOf(entry.Extensions)) {
			found.contexts.Insert(name)
		}
	}
	return found
}

// hasAuthorityOf returns a function that reports whether a cluster is one of a landscape: its certificate authority
// is.
func hasAuthorityOf(dir string) func(*clientcmdapi.Cluster) bool {
	authorities := sets.New[string]()
	_ = filepath.WalkDir(filepath.Join(dir, statedir.PKIFolder), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "ca.crt" {
			certificates, _ := cert.CertsFromFile(path)
			for _, certificate := range certificates {
				authorities.Insert(string(certificate.Raw))
			}
		}
		return nil
	})
	return func(cluster *clientcmdapi.Cluster) bool {
		certificates, _ := cert.ParseCertsPEM(cluster.CertificateAuthorityData)
		return slices.ContainsFunc(certificates, func(c *x509.Certificate) bool { return authorities.Has(string(c.Raw)) })
	}
}
