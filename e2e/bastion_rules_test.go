package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"
)

// How long Bastions live in the last part of TestBastionRules.
const (
	shortTimeToLive  = 25 * time.Second
	shortMaxLifetime = 60 * time.Second
)

// bastionRules tests what GEP-15 says of Bastions: who may create them and for which Shoots, where they lead to,
// how long they live, and what becomes of them when something fails.
func (l *landscape) bastionRules(t *testing.T) {
	small := func(network string) func(map[string]any) {
		return func(spec map[string]any) {
			worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
			worker["minimum"], worker["maximum"] = int64(1), int64(1)
			spec["networking"].(map[string]any)["nodes"] = network
		}
	}
	s, other := l.newShoot(t, "pier", small("10.10.0.0/16")), l.newShoot(t, "quay", small("10.20.0.0/16"))
	s.waitForSucceeded(t)
	other.waitForSucceeded(t)
	_, address := s.nodeAddress(t)
	_, elsewhere := other.nodeAddress(t)

	t.Run("the node of another shoot", func(t *testing.T) { s.leadsNowhereElse(t, address, other, elsewhere) })
	t.Run("nothing but port 22 of nodes", func(t *testing.T) { s.isNoGateway(t, address) })
	t.Run("many sessions", func(t *testing.T) { s.manySessions(t, address) })
	t.Run("ranges of IPv6", func(t *testing.T) { s.otherRanges(t) })
	t.Run("other members of the project", func(t *testing.T) { s.isTheCreators(t) })
	t.Run("a provider that fails", func(t *testing.T) { s.failureIsTold(t) })
	t.Run("a machine that is off", func(t *testing.T) { s.machineGoesDown(t) })
	t.Run("a shoot that goes", func(t *testing.T) { other.goesWithBastions(t) })

	l.stop(t)
	l.up(t, "--bastion-time-to-live", shortTimeToLive.String(), "--bastion-max-lifetime", shortMaxLifetime.String())
	t.Run("time", func(t *testing.T) { s.timeIsUp(t) })
	s.delete(t)
	s.waitGone(t)
	l.checkNothingForbidden(t)
}

// isCut waits until a connection has ended.
func isCut(t *testing.T, why string, ended <-chan error) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(shootTimeout):
		t.Errorf("%s, and the session goes on", why)
	}
}

// isProhibited expects that a rule refuses a forward, and no other error occurs.
func isProhibited(t *testing.T, client *ssh.Client, target string) {
	t.Helper()
	conn, err := client.Dial("tcp", target)
	if err == nil {
		_ = conn.Close()
	}
	if refused := (*ssh.OpenChannelError)(nil); !errors.As(err, &refused) || refused.Reason != ssh.Prohibited {
		t.Errorf("a forward to %s: %v", target, err)
	}
}

// onNode runs a command on a node, through a bastion.
func onNode(client *ssh.Client, address string, key ssh.Signer, command string) (string, error) {
	conn, err := client.Dial("tcp", net.JoinHostPort(address, "22"))
	if err != nil {
		return "", err
	}
	inner, err := handshake(conn, address, ssh.PublicKeys(key))
	if err != nil {
		return "", err
	}
	defer inner.Close()
	session, err := inner.NewSession()
	if err != nil {
		return "", err
	}
	output, err := session.CombinedOutput(command)
	return strings.TrimSpace(string(output)), err
}

// leadsNowhereElse: the Bastion of a Shoot leads to the nodes of this Shoot, and not to those of another Shoot of
// the same project. It refuses the keys of the other Shoot, too.
func (s *shoot) leadsNowhereElse(t *testing.T, address string, other *shoot, elsewhere string) {
	mine, theirs := s.newBastion(t, "mine", "127.0.0.0/8"), other.newBastion(t, "theirs", "127.0.0.0/8")
	for _, test := range []struct {
		b             *bastion
		own, foreign  string
		key, otherKey ssh.Signer
	}{{mine, address, elsewhere, s.nodeSigner(t), other.nodeSigner(t)}, {theirs, elsewhere, address, other.nodeSigner(t), s.nodeSigner(t)}} {
		client, err := login(t.Context(), test.b.address, "", ssh.PublicKeys(test.b.signer))
		must(t, err)
		isProhibited(t, client, net.JoinHostPort(test.foreign, "22"))
		if got, err := onNode(client, test.own, test.key, "id -un"); err != nil || got != "gardener" {
			t.Errorf("through %s to its own node: %q, %v", test.b.name, got, err)
		}
		if _, err := onNode(client, test.own, test.otherKey, "true"); err == nil {
			t.Errorf("the node behind %s lets in who has the key of another Shoot's nodes", test.b.name)
		}
		_ = client.Close()
	}
	for at, key := range map[string]ssh.Signer{mine.address: theirs.signer, theirs.address: mine.signer} {
		if client, err := login(t.Context(), at, "", ssh.PublicKeys(key)); err == nil {
			_ = client.Close()
			t.Error("the key of the other Shoot's Bastion is let in")
		}
	}
	mine.delete(t)
	theirs.delete(t)
}

// isNoGateway: a bastion refuses everything but a forward to port 22 of a node, and programs on it reach no address.
// One key is authorized on it.
func (s *shoot) isNoGateway(t *testing.T, address string) {
	b := s.newBastion(t, "gateway", "127.0.0.0/8")
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	defer client.Close()
	for _, target := range []string{"127.0.0.1:22", "[::1]:22", strings.TrimPrefix(s.l.config(t).Host, "https://"),
		net.JoinHostPort(address, "10250"), "localhost:22", "169.254.169.254:80"} {
		isProhibited(t, client, target)
	}
	if conn, err := client.Dial("unix", "/var/run/docker.sock"); err == nil {
		_ = conn.Close()
		t.Error("a socket is forwarded")
	}
	if socket, err := client.ListenUnix("/tmp/socket"); err == nil {
		_ = socket.Close()
		t.Error("it listens on a socket")
	}
	session, err := client.NewSession()
	must(t, err)
	x11 := ssh.Marshal(struct {
		Single           bool
		Protocol, Cookie string
		Screen           uint32
	}{false, "MIT-MAGIC-COOKIE-1", "00", 0})
	for request, payload := range map[string][]byte{"auth-agent-req@openssh.com": nil, "x11-req": x11} {
		if granted, err := session.SendRequest(request, true, payload); granted || err != nil {
			t.Errorf("%s: %t, %v", request, granted, err)
		}
	}
	for command, wanted := range map[string]string{
		"curl -sk " + s.l.config(t).Host: "no network", "nc -z " + address + " 22": "no network", "ssh " + address: "no network",
		"wc -l < .ssh/authorized_keys": "1",
		"cat .ssh/authorized_keys":     strings.TrimSpace(string(ssh.MarshalAuthorizedKey(b.signer.PublicKey()))),
	} {
		session, err := client.NewSession()
		must(t, err)
		if output, _ := session.CombinedOutput(command); !strings.Contains(string(output), wanted) {
			t.Errorf("%s: %q", command, output)
		}
	}
	b.delete(t)
}

// manySessions: there may be several sessions, at the same time and one after the other.
func (s *shoot) manySessions(t *testing.T, address string) {
	b, key := s.newBastion(t, "many", "127.0.0.0/8"), s.nodeSigner(t)
	for round := range 2 {
		var group sync.WaitGroup
		open := make(chan struct{})
		var all sync.WaitGroup
		all.Add(4)
		go func() { all.Wait(); close(open) }()
		for range 4 {
			group.Go(func() {
				client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
				all.Done()
				<-open // all are logged in, or have failed
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				defer client.Close()
				if got, err := onNode(client, address, key, "id -un"); err != nil || got != "gardener" {
					t.Errorf("round %d: %q, %v", round, got, err)
				}
			})
		}
		group.Wait()
	}
	b.delete(t)
}

// otherRanges: ranges of IPv6 are accepted, and admit no client with an address of IPv4. Exceptions of a range are
// refused.
func (s *shoot) otherRanges(t *testing.T) {
	b := s.newBastion(t, "six", "2001:db8::/32", "::/0")
	letIn := func(source string) error {
		client, err := login(t.Context(), b.address, source, ssh.PublicKeys(b.signer))
		if err == nil {
			_ = client.Close()
		}
		return err
	}
	if letIn("") == nil {
		t.Error("a range of IPv6 admits a client with an address of IPv4")
	}
	_, port, err := net.SplitHostPort(b.address)
	must(t, err)
	if client, err := login(t.Context(), net.JoinHostPort("::1", port), "", ssh.PublicKeys(b.signer)); err == nil {
		_ = client.Close()
		t.Error("the bastion is at an address that its status does not say")
	}
	b.patch(t, `{"spec":{"ingress":[{"ipBlock":{"cidr":"::/0"}},{"ipBlock":{"cidr":"127.0.0.0/8","except":["127.0.0.4/32"]}}]}}`)
	eventually(t, shootTimeout, func(context.Context) error { return letIn("127.0.0.3") })
	if letIn("127.0.0.4") == nil {
		t.Error("a client in an excepted range is admitted")
	}
	b.delete(t)
}

// newMember adds users to the Project as members, and waits until their role is effective.
func (l *landscape) newMember(t *testing.T, role string, names ...string) (users []*accessUser) {
	t.Helper()
	for _, name := range names {
		eventually(t, shootTimeout, func(ctx context.Context) error {
			project, err := l.at("projects", "").Get(ctx, "dev", metav1.GetOptions{})
			if err != nil {
				return err
			}
			members, _, _ := unstructured.NestedSlice(project.Object, "spec", "members")
			members = append(members, map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name, "role": role})
			if err := unstructured.SetNestedSlice(project.Object, members, "spec", "members"); err != nil {
				return err
			}
			_, err = l.at("projects", "").Update(ctx, project, metav1.UpdateOptions{})
			return err
		})
		user := certificateUser(t, l.dir, name)
		eventually(t, shootTimeout, func(ctx context.Context) error {
			right := authorizationv1.ResourceAttributes{Verb: "list", Group: "operations.gardener.cloud", Resource: "bastions",
				Namespace: shootNamespace}
			if got, err := mayDo(ctx, user, right); err != nil || !got {
				return fmt.Errorf("%s has no rights yet: %v", name, err)
			}
			return nil
		})
		users = append(users, user)
	}
	return users
}

// isTheCreators: only administrators of a project create Bastions. The garden records the creator, and only the
// creator can change the ingress. No user can write the status.
func (s *shoot) isTheCreators(t *testing.T) {
	admins := s.l.newMember(t, "admin", "alice", "bob")
	viewer := s.l.newMember(t, "viewer", "vic")[0]
	alice, bob, stranger := admins[0], admins[1], certificateUser(t, s.l.dir, "sam")
	const path = "/apis/operations.gardener.cloud/v1alpha1/namespaces/" + shootNamespace + "/bastions"
	b := s.wantBastion(t, "pattern", nil, "127.0.0.1/32")
	b.delete(t)
	b.name = "alices"
	forged := meta("operations.gardener.cloud/v1alpha1", "Bastion", shootNamespace, b.name,
		map[string]any{"spec": b.spec("127.0.0.0/8"), "status": map[string]any{
			"ingress": map[string]any{"ip": "127.0.0.9"}, "expirationTimestamp": "2099-01-01T00:00:00Z",
			"conditions": []any{map[string]any{"type": "BastionReady", "status": "True", "reason": "Forged", "message": "",
				"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}}}})
	forged["metadata"].(map[string]any)["annotations"] = map[string]any{"gardener.cloud/created-by": "bob", "gardenlite.dev/ssh-port": "1"}
	body, err := yaml.Marshal(forged)
	must(t, err)
	body, err = yaml.YAMLToJSON(body)
	must(t, err)
	ask := func(user *accessUser, method, path, body string, wanted int) {
		t.Helper()
		a, err := user.Send(t.Context(), method, path, strings.NewReader(body), method == http.MethodPatch, false)
		must(t, err)
		if a.Code != wanted {
			t.Errorf("%s, %s %s: %s, not %d", user.Name, method, path, a, wanted)
		}
	}
	for _, user := range []*accessUser{viewer, stranger} {
		ask(user, http.MethodPost, path, string(body), http.StatusForbidden)
	}
	ask(alice, http.MethodPost, path, string(body), http.StatusCreated)
	b.says(t, "True", "SuccessfullyReconciled", "")
	b.ready(t)
	made, err := s.l.at("bastions", shootNamespace).Get(t.Context(), b.name, metav1.GetOptions{})
	must(t, err)
	if by := made.GetAnnotations()["gardener.cloud/created-by"]; by != "alice" || strings.Contains(fmt.Sprint(made.Object["status"]), "2099") {
		t.Errorf("created by %s: %v", by, made.Object["status"])
	}
	client, err := login(t.Context(), b.address, "127.0.0.1", ssh.PublicKeys(b.signer)) // at the address that the status has now
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()

	for i, test := range []struct {
		user                      *accessUser
		read, open, status, alive int
	}{{bob, 200, 403, 403, 200}, {viewer, 200, 403, 403, 403}, {stranger, 403, 403, 403, 403}, {alice, 200, 200, 403, 200}} {
		own, creator := path+"/"+b.name, http.StatusUnprocessableEntity
		if test.alive != http.StatusOK {
			creator = http.StatusForbidden
		}
		ask(test.user, http.MethodGet, own, "", test.read)
		ask(test.user, http.MethodPatch, own, fmt.Sprintf(`{"spec":{"ingress":[{"ipBlock":{"cidr":"127.0.0.0/%d"}}]}}`, 16+i), test.open)
		ask(test.user, http.MethodPatch, own+"/status", `{"status":{"ingress":{"ip":"127.0.0.9"}}}`, test.status)
		ask(test.user, http.MethodPatch, own, `{"metadata":{"annotations":{"gardener.cloud/operation":"keepalive"}}}`, test.alive)
		ask(test.user, http.MethodPatch, own, `{"metadata":{"annotations":{"gardener.cloud/created-by":"mallory"}}}`, creator)
	}
	select {
	case err := <-ended:
		t.Fatalf("the session has ended: %v", err)
	default:
	}
	ask(viewer, http.MethodDelete, path+"/"+b.name, "", http.StatusForbidden)
	ask(bob, http.MethodDelete, path+"/"+b.name, "", http.StatusOK)
	b.waitGone(t)
	isCut(t, "another administrator has deleted the Bastion", ended)
}

// ends has the last known state of Bastions.
type ends struct {
	mu   sync.Mutex
	last map[string]*unstructured.Unstructured
}

// follow watches Bastions, and records their last known state.
func (l *landscape) follow(t *testing.T) *ends {
	t.Helper()
	e := &ends{last: map[string]*unstructured.Unstructured{}}
	bastions := l.at("bastions", shootNamespace)
	now, err := bastions.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	// A watch ends with the client's timeout of a request; the next one continues where it ended.
	events, err := watchtools.NewRetryWatcherWithContext(t.Context(), now.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return bastions.Watch(ctx, options)
		}})
	must(t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for event := range events.ResultChan() {
			if obj, ok := event.Object.(*unstructured.Unstructured); ok {
				e.mu.Lock()
				e.last[obj.GetName()] = obj
				e.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { events.Stop(); group.Wait() })
	return e
}

// of returns when a Bastion was created and deleted, and when it would have expired. It waits until the Bastion is
// being deleted.
func (e *ends) of(t *testing.T, name string) (created, deleted, expires time.Time) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		obj := e.last[name]
		if obj == nil || obj.GetDeletionTimestamp() == nil {
			return fmt.Errorf("the Bastion %s is not deleted: %v", name, obj)
		}
		created, deleted, expires = obj.GetCreationTimestamp().Time, obj.GetDeletionTimestamp().Time, expiration(t, obj)
		return nil
	})
	return created, deleted, expires
}

func expiration(t *testing.T, obj *unstructured.Unstructured) time.Time {
	t.Helper()
	text, _, _ := unstructured.NestedString(obj.Object, "status", "expirationTimestamp")
	at, err := time.Parse(time.RFC3339, text)
	must(t, err)
	return at
}

// keepAlive keeps a Bastion alive until the function that it returns is called, or the Bastion is gone. Once that function
// has returned, no request is under way: a canceled one could still take effect.
func (b *bastion) keepAlive(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			_, _ = b.s.l.at("bastions", shootNamespace).Patch(context.WithoutCancel(ctx), b.name, types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"gardener.cloud/operation":"keepalive"}}}`), metav1.PatchOptions{})
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	stop = func() { cancel(); group.Wait() }
	t.Cleanup(stop)
	return stop
}

// timeIsUp: a Bastion without heartbeats is deleted when it expires, whatever else is changed in it. A Bastion with
// heartbeats, which a session of gardenlite ssh sends too, is deleted when it reaches its maximum lifetime. Each
// time, the open session is cut.
func (s *shoot) timeIsUp(t *testing.T) {
	e := s.l.follow(t)
	s.ssh(t, "--keep-bastion", "--", "true").OK(t)
	before, err := s.l.at("bastions", shootNamespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(before.Items) != 1 {
		t.Fatalf("%d Bastions are kept, not one", len(before.Items))
	}
	used := before.Items[0].GetName()
	through := s.runsSSH(t, "--bastion", used)
	left, kept := s.wantBastion(t, "left", nil, "127.0.0.0/8"), s.wantBastion(t, "kept", nil, "127.0.0.0/8")
	abandon := left.keepAlive(t) // until there is a session, however slow the machine is
	kept.keepAlive(t)
	session := func(b *bastion) (ended chan error) {
		b.ready(t)
		client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
		must(t, err)
		t.Cleanup(func() { _ = client.Close() })
		ended = make(chan error, 1)
		go func() { ended <- client.Wait() }()
		return ended
	}
	leftEnded, keptEnded := session(left), session(kept)
	abandon()
	obj, err := s.l.at("bastions", shootNamespace).Get(t.Context(), left.name, metav1.GetOptions{})
	must(t, err)
	expires := expiration(t, obj)
	left.patch(t, `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile","some":"change"}},`+
		`"spec":{"ingress":[{"ipBlock":{"cidr":"127.0.0.0/9"}}]},"status":{"expirationTimestamp":"2099-01-01T00:00:00Z"}}`)
	client, err := login(t.Context(), left.address, "", ssh.PublicKeys(left.signer))
	must(t, err)
	_ = client.Close()

	isCut(t, "the Bastion had no heartbeat", leftEnded)
	created, deleted, expired := e.of(t, left.name)
	if end := created.Add(shortMaxLifetime); !expired.Equal(expires) || deleted.Before(expires) && deleted.Before(end) {
		t.Errorf("it was to end at %s; it has ended at %s, when it was to end at %s", expires, deleted, expired)
	}
	select {
	case err := <-keptEnded:
		if time.Now().Before(created.Add(shortMaxLifetime)) { // kept is not older than left
			t.Errorf("the Bastion that is kept alive has ended with the other one: %v", err)
		}
		keptEnded <- err
	default:
	}
	left.waitGone(t)

	isCut(t, "the Bastion is as old as it may become", keptEnded)
	created, deleted, expired = e.of(t, kept.name)
	if deleted.Before(created.Add(shortMaxLifetime)) || !deleted.Before(expired) {
		t.Errorf("it was created at %s, has ended at %s, and was kept alive until %s", created, deleted, expired)
	}
	kept.waitGone(t)

	select {
	case <-through.ended:
	case <-time.After(shootTimeout):
		t.Error("the Bastion that gardenlite ssh went through is too old, and the session goes on")
	}
	if created, deleted, _ := e.of(t, used); deleted.Before(created.Add(shortMaxLifetime)) {
		t.Errorf("a session through the Bastion of %s does not keep it alive: it has ended at %s", created, deleted)
	}
}
