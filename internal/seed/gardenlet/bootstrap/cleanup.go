package bootstrap

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	bootstraptokenapi "k8s.io/cluster-bootstrap/token/api"
	bootstraptokenutil "k8s.io/cluster-bootstrap/token/util"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// Prefix of the user name of a ServiceAccount, and the name for any user other than that and a bootstrap token.
const (
	accountPrefix = "system:serviceaccount:"
	otherUser     = "another user"
)

// userOf returns the user as which the garden authenticates the client of a bootstrap kubeconfig: that of a bootstrap
// token, that of a ServiceAccount, or otherUser.
func userOf(config *rest.Config) string {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		if data, err := os.ReadFile(config.BearerTokenFile); err == nil {
			token = strings.TrimSpace(string(data))
		}
	}
	if parts := bootstraptokenutil.BootstrapTokenRegexp.FindStringSubmatch(token); parts != nil {
		return bootstraptokenapi.BootstrapUserPrefix + parts[1]
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if parts := strings.Split(token, "."); len(parts) == 3 {
		if payload, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil &&
			json.Unmarshal(payload, &claims) == nil && strings.HasPrefix(claims.Subject, accountPrefix) {
			return claims.Subject
		}
	}
	return otherUser
}

// cleanUp deletes what bootstrapped the identity, in the garden and then in the seed.
func (i *Identity) cleanUp(ctx context.Context) {
	i.retry(ctx, "Deleting what bootstrapped the gardenlet failed", func() error {
		s, err := readStore(ctx, i.cfg.SeedClient)
		if err != nil {
			return err
		}
		user := s.secret.Annotations[bootstrappedBy]
		if user == "" {
			return nil
		}
		if err := i.deleteUser(ctx, user); err != nil {
			return err
		}
		if err := deleteBootstrap(ctx, i.cfg.SeedClient, user); err != nil {
			return err
		}
		return s.setCleaned(ctx)
	})
}

// deleteUser deletes the bootstrap token, or the ServiceAccount with its binding, that bootstrapped the gardenlet. It uses
// the gardenlet's identity: the SeedAuthorizer allows it to delete the ones of its seed, which it knows by name. A token
// with any other ID is left to expire.
func (i *Identity) deleteUser(ctx context.Context, user string) error {
	client, err := i.client()
	if err != nil {
		return err
	}
	id := bootstraprules.TokenID(constants.GardenNamespace, i.cfg.SeedName)
	account := bootstraprules.AccountPrefix + i.cfg.SeedName
	background := metav1.DeleteOptions{}
	switch user {
	case bootstraptokenapi.BootstrapUserPrefix + string(id[:]):
		name := bootstraptokenapi.BootstrapTokenSecretPrefix + string(id[:])
		return i.deleted("Secret "+metav1.NamespaceSystem+"/"+name, client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, name, background))
	case accountPrefix + constants.GardenNamespace + ":" + account:
		name := bootstraprules.BindingPrefix + constants.GardenNamespace + ":" + account
		if err := i.deleted("ClusterRoleBinding "+name, client.RbacV1().ClusterRoleBindings().Delete(ctx, name, background)); err != nil {
			return err
		}
		return i.deleted("ServiceAccount "+constants.GardenNamespace+"/"+account,
			client.CoreV1().ServiceAccounts(constants.GardenNamespace).Delete(ctx, account, background))
	}
	i.cfg.Log.Info("What bootstrapped the gardenlet is not for it to delete: a token goes when it expires", "user", user)
	return nil
}

func (i *Identity) deleted(what string, err error) error {
	switch {
	case err == nil:
		i.cfg.Log.Info("Deleted what bootstrapped the gardenlet", "object", what)
		return nil
	case apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("deleting what bootstrapped the gardenlet, %s in the garden: %w", what, err)
}
