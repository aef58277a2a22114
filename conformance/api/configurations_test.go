package api

import (
	"fmt"
	"strings"
)

// configurations are the texts of ConfigMaps, each as an audit policy, and as structured authentication and authorization.
var configurations = map[string]string{
	"empty": "", "text": "no object", "list": "[]", "braces": "{}",
	"other-kind":                 `{"apiVersion": "v1", "kind": "ConfigMap"}`,
	"policy":                     `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}`,
	"policy-without-rules":       `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}`,
	"policy-of-an-old-version":   `{"apiVersion": "audit.k8s.io/v1beta1", "kind": "Policy", "rules": [{"level": "None"}]}`,
	"policy-with-a-wrong-level":  `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "All"}]}`,
	"policy-with-a-wrong-stage":  `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["Last"], "rules": [{"level": "None"}]}`,
	"policy-with-a-wrong-type":   `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": {}}`,
	"policy-with-another-field":  `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}], "other": 1}`,
	"policy-with-resource-names": `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None", "resources": [{"resourceNames": ["a"]}]}]}`,
	"policy-with-non-resource":   `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None", "nonResourceURLs": ["/x"], "resources": [{}]}]}`,
	"policy-in-yaml":             "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n",
	"policy-in-bad-yaml":         "apiVersion: audit.k8s.io/v1\n kind: Policy\n",

	"authentication":                    authenticationWith(issuer),
	"authentication-without-issuer":     authenticationWith(``),
	"authentication-with-http":          authenticationWith(`"issuer": {"url": "http://issuer.example.com", "audiences": ["a"]}`),
	"authentication-without-audience":   authenticationWith(`"issuer": {"url": "https://issuer.example.com"}`),
	"authentication-with-a-wrong-ca":    authenticationWith(`"issuer": {"url": "https://issuer.example.com", "audiences": ["a"], "certificateAuthority": "x"}`),
	"authentication-with-another-field": authenticationWith(issuer + `, "other": 1`),
	"authentication-with-a-wrong-rule":  authenticationWith(issuer + `, "claimValidationRules": [{"expression": "x +"}]`),
	"authentication-of-a-service-account-issuer": authenticationWith(
		`"issuer": {"url": "https://kubernetes.default.svc", "audiences": ["a"]}`),
	"authentication-without-prefix": `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "jwt": [
		{"issuer": {"url": "https://issuer.example.com", "audiences": ["a"]}, "claimMappings": {"username": {"claim": "sub"}}}]}`,
	"authentication-anonymous": `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "anonymous": {"enabled": true}}`,
	"authentication-v1":        strings.Replace(authenticationWith(issuer), "v1beta1", "v1", 1),
	"authentication-v1alpha1":  strings.Replace(authenticationWith(issuer), "v1beta1", "v1alpha1", 1),
	"authentication-v2":        strings.Replace(authenticationWith(``), "v1beta1", "v2", 1),

	"authorization":                    authorizationWith("hook", "Webhook", ``),
	"authorization-with-another-name":  authorizationWith("other", "Webhook", ``),
	"authorization-with-node":          authorizationWith("hook", "Node", ``),
	"authorization-with-kubeconfig":    authorizationWith("hook", "Webhook", `, "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/x"}`),
	"authorization-in-cluster":         authorizationWith("hook", "Webhook", `, "connectionInfo": {"type": "InClusterConfig"}`),
	"authorization-with-a-condition":   authorizationWith("hook", "Webhook", `, "matchConditions": [{"expression": "x +"}]`),
	"authorization-with-another-field": authorizationWith("hook", "Webhook", `, "other": 1`),
	"authorization-without-authorizer": `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthorizationConfiguration"}`,
	"authorization-v1":                 strings.Replace(authorizationWith("hook", "Webhook", ``), "v1beta1", "v1", 1),
	"authorization-v1alpha1":           strings.Replace(authorizationWith("hook", "Webhook", ``), "v1beta1", "v1alpha1", 1),
}

// issuer is a field of AuthenticationConfigurations.
const issuer = `"issuer": {"url": "https://issuer.example.com", "audiences": ["a"]}`

func authenticationWith(fields string) string {
	if fields != "" {
		fields += ", "
	}
	return `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "jwt": [{` + fields +
		`"claimMappings": {"username": {"claim": "sub", "prefix": "p:"}}}]}`
}

func authorizationWith(name, kind, fields string) string {
	return fmt.Sprintf(`{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthorizationConfiguration", "authorizers": [{"type": %q, "name": %q,
		"webhook": {"timeout": "3s", "subjectAccessReviewVersion": "v1", "authorizedTTL": "30s", "unauthorizedTTL": "30s",
		"matchConditionSubjectAccessReviewVersion": "v1", "failurePolicy": "Deny"%s}}]}`, kind, name, fields)
}
