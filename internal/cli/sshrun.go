package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gardenlite/gardenlite/internal/sshclient"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// deletionTimeout is how long the request to delete a bastion may take after the session has ended.
const deletionTimeout = 10 * time.Second

// run connects to a node, or writes how OpenSSH connects to it.
func (s *sshFlags) run(ctx context.Context, g *globals) error {
	key, err := shootKey(s.shoot, defaultProject)
	if err != nil {
		return err
	}
	client, err := g.sshClient(ctx)
	if err != nil {
		return err
	}
	if s.dir, err = g.dir(); err != nil {
		return err
	}
	shoot, err := client.Shoot(ctx, key)
	if err != nil {
		return explainShoot(g, err)
	}
	target := &sshclient.OpenSSH{Route: sshclient.Route{Network: shoot.Status.TechnicalID}}
	stays := s.bastion != ""
	if stays {
		if target.Bastion, err = client.Find(ctx, shoot, s.bastion); err != nil {
			return err
		}
		if target.Bastion, err = client.Heartbeat(ctx, target.Bastion); err != nil {
			return err
		}
	}
	if target.Key, err = s.keyPair(); err != nil {
		return err
	}
	if target.Nodes, err = client.Nodes(ctx, key); err != nil {
		return err
	}
	if target.Node, err = sshclient.Choose(target.Nodes, s.node); err != nil {
		return err
	}
	if !stays {
		target.Bastion = sshclient.NewBastion(shoot, target.Key.Public, s.cidrs)
		created := target.Bastion
		defer func() {
			if !stays {
				s.delete(ctx, g, client, created)
			}
		}()
		if err := client.Create(ctx, created); err != nil {
			stays = refused(err) // there is nothing to delete
			return err
		}
	}
	if err := s.prepare(ctx, g, client, shoot, target); err != nil {
		return err
	}
	if s.printsOnly() || s.keep {
		if err := target.Write(); err != nil {
			return err
		}
	}
	if s.printsOnly() {
		if err := s.show(ctx, g, target); err != nil {
			return err
		}
		stays = true
		return nil
	}
	stays = stays || s.keep
	return s.open(ctx, g, client, target)
}

// refused reports whether the API server refused a request. After a timeout or another failure, it may be fulfilled.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
}

// keyPair returns the key pair for the bastion: the user's, the kept one, or a new one.
func (s *sshFlags) keyPair() (sshclient.KeyPair, error) {
	if s.publicFile != "" || s.privateFile != "" {
		pair, err := sshclient.ReadKeyPair(s.publicFile, s.privateFile)
		if err == nil && pair.Signer == nil && !s.printsOnly() {
			err = usage.Errorf("the private key is encrypted or missing: say with --private-key-file " +
				"where one is that can be used, or let OpenSSH and its agent do it with --print")
		}
		return pair, err
	}
	if s.bastion == "" {
		return sshclient.NewKeyPair()
	}
	pair, err := sshclient.ReadStoredKey(statedir.BastionDir(s.dir, s.bastion))
	if errors.Is(err, fs.ErrNotExist) {
		return pair, usage.Errorf("the key for the bastion %s was not kept: say with --private-key-file where it is", s.bastion)
	}
	return pair, err
}

// delete requests the deletion of the bastion, also after ctx was canceled.
func (s *sshFlags) delete(ctx context.Context, g *globals, client *sshclient.Client, bastion *operationsv1alpha1.Bastion) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletionTimeout)
	defer cancel()
	if err := client.Delete(ctx, bastion); err != nil {
		printLine(g.err, "gardenlite:", err)
	}
}

// prepare waits for the bastion, and meanwhile reads the private keys for the nodes.
func (s *sshFlags) prepare(ctx context.Context, g *globals, client *sshclient.Client, shoot *corev1beta1.Shoot,
	target *sshclient.OpenSSH) error {
	bastion := target.Bastion
	target.Dir = statedir.BastionDir(s.dir, bastion.Name)
	progress := newProgress(g, 0)
	progress.begin("Waiting for the bastion " + bastion.Name)
	defer progress.close()
	waiting, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	group, waiting := errgroup.WithContext(waiting)
	group.Go(func() error {
		ready, err := client.Wait(waiting, bastion, progress.say)
		if err == nil {
			target.Bastion = ready
		}
		return err
	})
	group.Go(func() (err error) {
		target.NodeKeys, err = client.NodeKeys(waiting, shoot)
		return err
	})
	err := group.Wait()
	if err != nil {
		return err
	}
	hosts := ""
	if s.files() {
		if err := client.MakeDir(ctx, target.Dir); err != nil {
			return err
		}
		hosts = sshclient.KnownHosts(target.Dir)
	}
	if target.Helper, err = g.sshHelper(s.dir); err != nil {
		return err
	}
	target.HostKeys, err = sshclient.NewHostKeys(hosts)
	return err
}

// open connects to the node and runs the session. Meanwhile it keeps the bastion alive.
func (s *sshFlags) open(ctx context.Context, g *globals, client *sshclient.Client, target *sshclient.OpenSSH) error {
	ctx, cancel := context.WithCancel(ctx)
	report := func(err error) { printf(g.err, "gardenlite: %s\r\n", err) }
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { client.KeepAlive(ctx, target.Bastion, report) })
	tunnel, err := target.Dial(ctx)
	if err != nil {
		return err
	}
	defer tunnel.Close()
	for _, forward := range s.parsed {
		address, stop, err := tunnel.Forward(ctx, forward, report)
		if err != nil {
			return err
		}
		defer stop()
		printf(g.err, "Forwarding %s to %s.\n", address, forward.Target)
	}
	if s.keep || s.bastion != "" {
		s.printKept(g, target)
	}
	in := g.in
	if s.noInput {
		in = strings.NewReader("")
	}
	status, err := tunnel.Run(ctx,
		sshclient.Session{In: in, Out: g.out, Err: g.err, Command: strings.Join(s.command, " "), TTY: s.tty})
	switch {
	case errors.Is(err, sshclient.ErrConnectionLost):
		return &exitError{exitConnectionLost, err}
	case err != nil:
		return err
	case status != 0:
		return &exitError{code: status}
	}
	return nil
}

// show prints how OpenSSH connects. If the private key can be used here, it connects once before, so that the host
// keys are known.
func (s *sshFlags) show(ctx context.Context, g *globals, target *sshclient.OpenSSH) error {
	if target.Key.Signer != nil {
		tunnel, err := target.Dial(ctx)
		if err != nil {
			return err
		}
		tunnel.Close()
	}
	if s.config {
		s.printKept(g, target)
		printf(g.err, "Type next: ssh -F %s %s\nOr put this line at the beginning of ~/.ssh/config: Include %s\n",
			sshclient.Quote(target.ConfigFile()), target.Node.Name, sshclient.Quote(target.ConfigFile()))
		_, err := io.WriteString(g.out, target.ConfigFile()+"\n")
		return err
	}
	var more []string
	for _, forward := range s.forwards {
		more = append(more, "-L", forward)
	}
	if s.tty {
		more = append(more, "-t")
	}
	if s.noInput {
		more = append(more, "-n")
	}
	line := target.ProxyJump(more, s.command)
	if s.print == printCommand {
		line = target.ProxyCommand(more, s.command)
	}
	for i, word := range line {
		line[i] = sshclient.Quote(word)
	}
	s.printKept(g, target)
	_, err := io.WriteString(g.out, strings.Join(line, " ")+"\n")
	return err
}

// printKept prints until when the bastion stays, and how to delete it.
func (s *sshFlags) printKept(g *globals, target *sshclient.OpenSSH) {
	until := ""
	if end := target.Bastion.Status.ExpirationTimestamp; end != nil {
		until = " until " + moment(end.Time) + ", longer if it is kept alive"
	}
	printf(g.err, "The bastion %s stays%s. To delete it: kubectl -n %s delete bastion %[1]s\n", target.Bastion.Name,
		until, target.Bastion.Namespace)
}
