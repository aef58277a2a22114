package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const (
	project   = "/apis/core.gardener.cloud/v1beta1/projects/dev"
	shootPath = harness.ShootsPath + "/bench"
	// members is the group of the users who request kubeconfigs.
	members = "bench"
)

// landscape is a landscape with a Shoot, and with a group whose members administrate its project.
type landscape struct{ *harness.Landscape }

func startLandscape(ctx context.Context, algorithm string) (*landscape, error) {
	started, err := harness.StartLandscape(ctx, "--shoot-kubeconfig-key-algorithm="+algorithm)
	if err != nil {
		return nil, err
	}
	l := &landscape{started}
	if _, err = l.Run(ctx, "shoot", "create", "bench", "--workers=0", "--wait"); err == nil {
		err = l.addMembers(ctx)
	}
	if err != nil {
		l.Remove()
		return nil, err
	}
	return l, nil
}

// addMembers makes the group an administrator of the project, and waits until its members have access.
func (l *landscape) addMembers(ctx context.Context) error {
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/members/-","value":{"apiGroup":"rbac.authorization.k8s.io",`+
		`"kind":"Group","name":%q,"role":"admin","roles":["serviceaccountmanager"]}}]`, members)
	if err := l.Kube.CoreV1().RESTClient().Patch(types.JSONPatchType).AbsPath(project).Body([]byte(patch)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("adding a member to the project: %w", err)
	}
	client, err := l.Client(ctx, "--user=user-0", "--group="+members)
	if err != nil {
		return err
	}
	return harness.Poll(ctx, time.Minute, func() (bool, error) {
		return client.CoreV1().RESTClient().Get().AbsPath(shootPath).Do(ctx).Error() == nil, nil
	})
}

// users returns the clients of several users.
func (l *landscape) users(ctx context.Context, count int) ([]kubernetes.Interface, error) {
	var clients []kubernetes.Interface
	for i := range count {
		client, err := l.Client(ctx, fmt.Sprintf("--user=user-%d", i), "--group="+members)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// key returns the private key in the response to a request for a kubeconfig.
func key(answer []byte) (string, error) {
	var request struct {
		Status struct{ Kubeconfig []byte }
	}
	if err := json.Unmarshal(answer, &request); err != nil {
		return "", err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(request.Status.Kubeconfig)
	if err != nil {
		return "", err
	}
	return string(config.KeyData), nil
}
