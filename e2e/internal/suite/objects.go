package suite

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

// Resource is where the objects of a resource of the garden are.
type Resource struct {
	Path       string // below the server's address, up to the group's version
	Group      string
	Name       string
	Namespaced bool
}

// Resources are the resources that the rules of scoped API access name, by their names there.
var Resources = func() map[string]Resource {
	all := map[string]Resource{
		"events.events.k8s.io": {"/apis/events.k8s.io/v1", "events.k8s.io", "events", true},
	}
	add := func(path, group, names string, namespaced bool) {
		for name := range strings.FieldsSeq(names) {
			all[name] = Resource{path, group, name, namespaced}
		}
	}
	const cluster, namespaced = false, true
	add("/api/v1", "", "namespaces", cluster)
	add("/api/v1", "", "configmaps secrets serviceaccounts events", namespaced)
	add("/apis/certificates.k8s.io/v1", "certificates.k8s.io", "certificatesigningrequests", cluster)
	add("/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io", "clusterrolebindings clusterroles", cluster)
	add("/apis/coordination.k8s.io/v1", "coordination.k8s.io", "leases", namespaced)
	add("/apis/core.gardener.cloud/v1beta1", "core.gardener.cloud",
		"backupbuckets cloudprofiles controllerinstallations controllerregistrations exposureclasses projects seeds", cluster)
	add("/apis/core.gardener.cloud/v1", "core.gardener.cloud", "controllerdeployments", cluster)
	add("/apis/core.gardener.cloud/v1beta1", "core.gardener.cloud",
		"backupentries internalsecrets namespacedcloudprofiles secretbindings shoots shootstates quotas", namespaced)
	add("/apis/operations.gardener.cloud/v1alpha1", "operations.gardener.cloud", "bastions", namespaced)
	add("/apis/security.gardener.cloud/v1alpha1", "security.gardener.cloud", "credentialsbindings workloadidentities", namespaced)
	add("/apis/seedmanagement.gardener.cloud/v1alpha1", "seedmanagement.gardener.cloud", "gardenlets managedseeds", namespaced)
	return all
}()

// ResourceOf returns the name of the resource of a kind.
func ResourceOf(kind string) string {
	plural := strings.ToLower(kind) + "s"
	for _, ending := range [][2]string{{"entrys", "entries"}, {"identitys", "identities"}, {"classs", "classes"}} {
		if stem, ok := strings.CutSuffix(plural, ending[0]); ok {
			return stem + ending[1]
		}
	}
	return plural
}

// Meta returns an object with a name and the given fields.
func Meta(apiVersion, kind, namespace, name string, fields map[string]any) map[string]any {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	maps.Copy(object, fields)
	return object
}

func secretRef(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": name}
}

// BucketObject returns a BackupBucket.
func BucketObject(name, seed, credentials string) map[string]any {
	return Meta("core.gardener.cloud/v1beta1", "BackupBucket", "", name, map[string]any{"spec": map[string]any{
		"provider": map[string]any{"type": "local", "region": "local"}, "credentialsRef": secretRef(credentials), "seedName": seed}})
}

// EntryObject returns a BackupEntry.
func EntryObject(namespace, name, seed, bucket string) map[string]any {
	return Meta("core.gardener.cloud/v1beta1", "BackupEntry", namespace, name,
		map[string]any{"spec": map[string]any{"bucketName": bucket, "seedName": seed}})
}

// SecretObject returns a Secret, of a type if one is given.
func SecretObject(namespace, name, kind string) map[string]any {
	object := Meta("v1", "Secret", namespace, name, map[string]any{"stringData": map[string]any{"key": "value"}})
	if kind != "" {
		object["type"] = kind
	}
	return object
}

// TokenObject returns the Secret of the bootstrap token for the gardenlet of an object.
func TokenObject(name, of string) map[string]any {
	object := SecretObject("kube-system", name, "bootstrap.kubernetes.io/token")
	object["stringData"] = map[string]any{
		"token-id": strings.TrimPrefix(name, "bootstrap-token-"), "token-secret": "0123456789abcdef",
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"description": "A bootstrap token for the Gardenlet for " + of + ".",
	}
	return object
}

// RequestObject returns a CertificateSigningRequest for the gardenlet of a seed, with changes; the seed "user"
// stands for a user.
func RequestObject(t *testing.T, name, seed string, change ...func(*x509.CertificateRequest)) map[string]any {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(t, err)
	template := &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{"gardener.cloud:system:seeds"}, CommonName: "gardener.cloud:system:seed:" + seed}}
	if seed == "user" {
		template.Subject.CommonName = seed
	}
	for _, c := range change {
		c(template)
	}
	request, err := cert.MakeCSRFromTemplate(key, template)
	Must(t, err)
	return Meta("certificates.k8s.io/v1", "CertificateSigningRequest", "", name, map[string]any{"spec": map[string]any{
		"request": base64.StdEncoding.EncodeToString(request), "signerName": "example.com/unknown",
		"usages": []any{"key encipherment", "digital signature", "client auth"}}})
}

// BootstrapTokenOf returns the name of the Secret with the token with which a gardenlet was bootstrapped.
func BootstrapTokenOf(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "--" + name))
	return "bootstrap-token-" + hex.EncodeToString(sum[:])[:6]
}
