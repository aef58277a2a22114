package accesscheck

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"fmt"
	"maps"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/client-go/util/cert"
)

func meta(apiVersion, kind, namespace, name string, fields object) object {
	metadata := object{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	maps.Copy(o, fields)
	return o
}

func secretRef(name string) object {
	return object{"apiVersion": "v1", "kind": "Secret", "namespace": garden, "name": name}
}

func annotated(o object, key, value string) object {
	o["metadata"].(object)["annotations"] = object{key: value}
	return o
}

// ref returns a reference to the credentials of the throwaway Seed: the Secret of the same name.
func (w *world) ref() object { return secretRef(w.seed) }

// seedSpec returns a valid Seed specification with the given credentials for DNS.
func (w *world) seedSpec(dns object) object {
	identity := object{
		"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", "namespace": garden, "name": w.seed}
	return object{
		"provider": w.provider,
		"backup":   object{"provider": w.provider.Type, "region": w.provider.Region, "credentialsRef": identity},
		"dns": object{
			"provider": object{"type": w.provider.Type, "credentialsRef": dns},
			"internal": object{
				"type": w.provider.Type, "domain": "internal." + w.seed + ".example.com", "credentialsRef": dns}},
		"ingress":  object{"domain": "ingress." + w.seed + ".example.com", "controller": object{"kind": "nginx"}},
		"networks": object{"nodes": "10.240.0.0/16", "pods": "10.241.0.0/16", "services": "10.242.0.0/16"},
	}
}

func (w *world) seedObject(dns, more object) object {
	spec := w.seedSpec(dns)
	maps.Copy(spec, more)
	return meta("core.gardener.cloud/v1beta1", "Seed", "", w.seed, object{"spec": spec})
}

// gardenletObject returns the Gardenlet of the attacker's seed with the given credentials for DNS.
func (w *world) gardenletObject(dns object) object {
	return meta("seedmanagement.gardener.cloud/v1alpha1", "Gardenlet", garden, w.seed, object{"spec": object{
		"deployment": object{"helm": object{"ociRepository": object{"ref": "registry.example.com/gardenlet:v1.150.0"}}},
		"config": object{"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
			"seedConfig": object{"spec": w.seedSpec(dns)}},
	}})
}

func (w *world) bucketObject(name string) object {
	return meta("core.gardener.cloud/v1beta1", "BackupBucket", "", name, object{"spec": object{
		"provider":       object{"type": w.provider.Type, "region": w.provider.Region},
		"credentialsRef": w.ref(), "seedName": w.seed}})
}

func entryObject(namespace, name, seed, bucket string) object {
	spec := object{"bucketName": bucket, "seedName": seed}
	return meta("core.gardener.cloud/v1beta1", "BackupEntry", namespace, name, object{"spec": spec})
}

// entryOfShoot returns a BackupEntry of the victim's Shoot. It has a new UID, because the Shoot may already have a
// BackupEntry.
func (w *world) entryOfShoot() object {
	uid := newUID()
	o := entryObject(w.shoot.namespace, w.shootID+"--"+uid, w.seed, w.bucket)
	o["metadata"].(object)["ownerReferences"] = []any{object{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": w.shoot.name, "uid": uid}}
	return o
}

// accountObject returns a ServiceAccount in the attacker's namespace with labels that grant it the permissions of
// another extension.
func (w *world) accountObject() object {
	o := meta("v1", "ServiceAccount", w.namespace(), "extension-more", nil)
	o["metadata"].(object)["labels"] = object{"selected": "true"}
	return o
}

func tokenObject(name, gardenlet string) object {
	return meta("v1", "Secret", "kube-system", name, object{"type": "bootstrap.kubernetes.io/token", "stringData": object{
		"token-id": name[len("bootstrap-token-"):], "token-secret": "0123456789abcdef",
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"description": "A bootstrap token for the Gardenlet for " +
			"seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/" + gardenlet + ".",
	}})
}

// identityToken requests a token of the attacker's WorkloadIdentity with the given context object.
func (w *world) identityToken(kind string, about place, uid string) *request {
	of := object{"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "name": about.name, "uid": uid}
	if about.namespace != "" {
		of["namespace"] = about.namespace
	}
	return post(security+"/namespaces/garden/workloadidentities/"+w.seed+"/token",
		meta("security.gardener.cloud/v1alpha1", "TokenRequest", garden, w.seed, object{"spec": object{"contextObject": of}}))
}

// csrObject returns a CertificateSigningRequest for the client certificate of a seed's gardenlet, and the new key.
func csrObject(name, seed string) (object, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	subject := pkix.Name{Organization: []string{constants.SeedsGroup}, CommonName: constants.SeedUserNamePrefix + seed}
	request, err := cert.MakeCSR(key, &subject, nil, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate request: %w", err)
	}
	return meta("certificates.k8s.io/v1", "CertificateSigningRequest", "", name, object{"spec": object{
		"request":    request,
		"signerName": "kubernetes.io/kube-apiserver-client", "expirationSeconds": 3600,
		"usages": []any{"key encipherment", "digital signature", "client auth"}}}), key, nil
}

func review(verb, group, resource, subresource, namespace, name string) *request {
	attributes := object{"verb": verb, "group": group, "resource": resource, "subresource": subresource,
		"namespace": namespace, "name": name}
	return post(reviews, object{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": object{"resourceAttributes": attributes}})
}
