package racetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/sshclient"
	"github.com/gardenlite/gardenlite/pkg/testenv"
)

// patience is the timeout for a start or a Shoot. The race detector makes everything several times as slow.
const patience = 10 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("GARDENLITE_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
		ctrllog.SetLogger(logr.Discard())
		logrus.SetOutput(io.Discard)
	}
	os.Exit(m.Run())
}

// TestLandscape starts a landscape with a seed, creates a Shoot, runs a command on its node through a Bastion, adds a seed,
// deletes all three and stops the landscape.
func TestLandscape(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	env := testenv.Start(t, testenv.WithReadyTimeout(patience))
	shoot, err := env.NewShoot(ctx, "raced", testenv.WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	client, err := sshclient.New(env.Config(), "", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	process, err := control.Connect(filepath.Dir(env.Kubeconfig()))
	if err != nil {
		t.Fatal(err)
	}
	if err := process.AddSeed(ctx, "further"); err != nil {
		t.Error(err)
	}
	bastion := runOnNode(ctx, t, client, shootclient.Key{Project: "dev", Name: "raced"})
	if err := client.Delete(ctx, bastion); err != nil {
		t.Error(err)
	}
	if err := errors.Join(process.RemoveSeed(ctx, "further"), shoot.Delete(ctx)); err != nil {
		t.Error(err)
	}
}

// runOnNode opens a Bastion for a Shoot and runs a command on its node through it.
func runOnNode(ctx context.Context, t *testing.T, client *sshclient.Client, key shootclient.Key) *operationsv1alpha1.Bastion {
	t.Helper()
	shoot, err := client.Shoot(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := sshclient.NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	route := sshclient.Route{Bastion: sshclient.NewBastion(shoot, pair.Public, []string{"127.0.0.0/8"}), Key: pair,
		Network: shoot.Status.TechnicalID}
	if err := client.Create(ctx, route.Bastion); err != nil {
		t.Fatal(err)
	}
	if route.Bastion, err = client.Wait(ctx, route.Bastion, func(message string) { t.Log(message) }); err != nil {
		t.Fatal(err)
	}
	nodes, err := client.Nodes(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if route.Node, err = sshclient.Choose(nodes, ""); err != nil {
		t.Fatal(err)
	}
	if route.NodeKeys, err = client.NodeKeys(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if route.HostKeys, err = sshclient.NewHostKeys(""); err != nil {
		t.Fatal(err)
	}
	tunnel, err := route.Dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	var out, errOut bytes.Buffer
	status, err := tunnel.Run(ctx, sshclient.Session{Out: &out, Err: &errOut, Command: "hostname"})
	if err != nil || status != 0 || out.String() != route.Node.Name+"\n" || errOut.Len() > 0 {
		t.Errorf("the node %s writes %q and %q, status %d, %v", route.Node.Name, out.String(), errOut.String(), status, err)
	}
	return route.Bastion
}
