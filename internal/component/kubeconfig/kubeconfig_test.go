package kubeconfig

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A kubeconfig from a cluster must not have a program run, a file read or traffic sent through a proxy on this machine.
func TestLoad(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		refused string
	}{
		"token":       {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "secret" }, ""},
		"password":    {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Username, u.Password = "a", "secret" }, ""},
		"server name": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.TLSServerName = "api" }, ""},
		"program": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.Exec = "secret", &clientcmdapi.ExecConfig{Command: "touch", APIVersion: "client.authentication.k8s.io/v1",
				InteractiveMode: "Never"}
		}, `user "u"`},
		"provider": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		}, `user "u"`},
		"token file":       {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = "/dev/zero" }, `user "u"`},
		"certificate file": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/etc/passwd" }, `user "u"`},
		"key file":         {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientKey = "/etc/passwd" }, `user "u"`},
		"impersonation":    {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Impersonate = "admin" }, `user "u"`},
		"CA file":          {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthority = "/dev/zero" }, `cluster "c"`},
		"proxy":            {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = "http://127.0.0.1:1" }, `cluster "c"`},
	} {
		config := clientcmdapi.NewConfig()
		c, u := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
		c.Server, config.CurrentContext = "https://127.0.0.1:1", "x"
		test.change(c, u)
		config.Clusters["c"], config.AuthInfos["u"], config.Contexts["x"] = c, u, &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
		data, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = RESTConfig(data)
		if (err == nil) != (test.refused == "") || err != nil && (!strings.Contains(err.Error(), test.refused) ||
			strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := RESTConfig([]byte("users: [{name: u, user: {token: [secret]}}]")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("what is no kubeconfig: %v", err)
	}
}
