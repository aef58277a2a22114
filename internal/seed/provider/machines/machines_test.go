package machines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

func TestPlan(t *testing.T) {
	// Machines by their first letter: r runs, p does not; a digit is a priority.
	parse := func(names string) (all []*machinev1alpha1.Machine) {
		for i, name := range strings.Fields(names) {
			m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
			m.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
			if name[0] == 'r' {
				m.Status.CurrentStatus.Phase = machinev1alpha1.MachineRunning
			}
			if len(name) > 2 {
				m.Annotations[annotationPriority] = name[2:]
			}
			all = append(all, m)
		}
		return all
	}
	for name, test := range map[string]struct {
		replicas, surge, unavailable int
		current, old                 string
		create                       int
		remove                       string
	}{
		"first":                          {3, 1, 0, "", "", 3, ""},
		"enough":                         {2, 1, 0, "ra pb", "", 0, ""},
		"too many: the youngest":         {1, 1, 0, "ra rb", "", 0, "rb"},
		"too many: what does not run":    {1, 1, 0, "pa rb", "", 0, "pa"},
		"too many: of least priority":    {1, 1, 0, "ra1 rb", "", 0, "ra1"},
		"a roll begins with surge":       {2, 1, 0, "", "ra rb", 1, ""},
		"it waits for the new one":       {2, 1, 0, "pc", "ra rb", 0, ""},
		"an old one goes":                {2, 1, 0, "rc", "ra rb", 0, "rb"},
		"the next new one":               {2, 1, 0, "rc", "ra", 1, ""},
		"a roll begins without surge":    {2, 0, 1, "", "ra rb", 0, "rb"},
		"old ones that do not run first": {3, 0, 1, "", "ra rb pc", 0, "pc"},
		"more are wanted meanwhile":      {4, 1, 0, "rc", "ra rb", 2, ""},
		"none is wanted":                 {0, 1, 0, "rc", "ra pb", 0, "rc pb ra"},
	} {
		create, remove := plan(test.replicas, limits{test.surge, test.unavailable}, parse(test.current), parse(test.old))
		var names []string
		for _, m := range remove {
			names = append(names, m.Name)
		}
		if create != test.create || !slices.Equal(names, strings.Fields(test.remove)) {
			t.Errorf("%s: create %d, remove %v; want %d, %s", name, create, names, test.create, test.remove)
		}
	}
}

func TestGuard(t *testing.T) {
	g := &Guard{}
	one, err1 := g.RLock(t.Context(), "a")
	two, err2 := g.RLock(t.Context(), "a")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Lock(ended, "a"); err == nil {
		t.Error("alone among others")
	}
	one()
	two()
	own, err := g.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.RLock(ended, "a"); err == nil {
		t.Error("another one beside the owner")
	}
	other, err := g.RLock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	own()
	if len(g.namespaces) != 0 {
		t.Errorf("%d namespaces are remembered", len(g.namespaces))
	}
}

func TestMergedTaints(t *testing.T) {
	taint := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	got := mergedTaints([]corev1.Taint{taint("foreign", ""), taint("old", ""), taint("changed", "1")},
		[]corev1.Taint{taint("old", ""), taint("changed", "1")}, []corev1.Taint{taint("changed", "2"), taint("new", "")})
	if want := []corev1.Taint{taint("foreign", ""), taint("changed", "2"), taint("new", "")}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestDrainRespectsBudgetsForAWhile(t *testing.T) {
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: "m"}}
	}
	daemon := pod("daemon")
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: new(true)}}
	shoot := fake.NewClientBuilder().WithScheme(shootScheme).WithObjects(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, pod("guarded"), daemon).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceCreate: func(context.Context, client.Client, string, client.Object,
			client.Object, ...client.SubResourceCreateOption) error {
			return apierrors.NewTooManyRequests("the budget is used up", 0)
		}}).Build()
	clk := clocktesting.NewFakeClock(time.Unix(1000, 0))
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(clk.Now())
	task := &task{MachineReconciler: &MachineReconciler{Clock: clk}, machine: m}
	for after, want := range []int{1, 0} {
		if left, err := task.drain(t.Context(), shoot); err != nil || left != want {
			t.Errorf("after %d times the patience %d are left, want %d: %v", after, left, want, err)
		}
		clk.Step(DefaultDrainTimeout)
	}
	node, pods := &corev1.Node{}, &corev1.PodList{}
	if err := errors.Join(shoot.Get(t.Context(), client.ObjectKey{Name: "m"}, node), shoot.List(t.Context(), pods)); err != nil {
		t.Fatal(err)
	}
	if !node.Spec.Unschedulable || len(pods.Items) != 1 || pods.Items[0].Name != "daemon" {
		t.Errorf("unschedulable: %v, pods: %v", node.Spec.Unschedulable, pods.Items)
	}
}

func TestConnectRefusesWhatIsOfTheHost(t *testing.T) {
	for name, user := range map[string]string{
		"program": "exec: {command: id, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}",
		"file":    "tokenFile: /etc/passwd",
		"key":     "{client-certificate: /a, client-key: /b}",
	} {
		if _, _, err := Connect(kubeconfig("https://127.0.0.1:1", user)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func kubeconfig(server, user string) []byte {
	return []byte(fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: c}}],
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: c, user: {%s}}]}`, server,
		strings.Trim(user, "{}")))
}

// TestShoots checks that there is one watch while machines are awaited, and new connections when the Secret changes.
func TestShoots(t *testing.T) {
	goroutinesEnded := testutil.Goroutines(t)
	watches := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Node","metadata":{"name":"m"}}}`+"\n")
		w.(http.Flusher).Flush()
		watches <- r.Header.Get("Authorization")
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "machine-controller-manager"}}
	secret.Data = map[string][]byte{KubeconfigKey: kubeconfig(server.URL, "token: one")}
	seed := fake.NewClientBuilder().WithScheme(shootScheme).WithObjects(secret).Build()
	changed := make(chan client.ObjectKey, 10)
	s := &Shoots{Seed: seed, Clock: clock.RealClock{}, Connect: Connect, Changed: func(key client.ObjectKey) { changed <- key }}
	ask := func() {
		t.Helper()
		if _, err := s.Client(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	expectWatch := func(token string) {
		t.Helper()
		select {
		case got := <-watches:
			if got != "Bearer "+token {
				t.Errorf("a watch with %q, want %s", got, token)
			}
		case <-time.After(testutil.Timeout):
			t.Fatal("no watch")
		}
		if key := <-changed; key != (client.ObjectKey{Namespace: "a", Name: "m"}) {
			t.Errorf("told of %s", key)
		}
	}
	ask()
	s.Await("a", "m")
	s.Await("a", "other")
	expectWatch("one")
	secret.Data[KubeconfigKey] = kubeconfig(server.URL, "token: two")
	if err := seed.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	ask()
	expectWatch("two")
	s.StopAwaiting("a", "m")
	s.StopAwaiting("a", "other")
	if s.shoots["a"].stop != nil {
		t.Error("the watch goes on although no machine waits")
	}
	s.Await("a", "m")
	expectWatch("two")
	if err := seed.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client(t.Context(), "a"); !errors.Is(err, errNoAccess) || len(s.shoots) != 0 {
		t.Errorf("without its Secret: %v, %d are remembered", err, len(s.shoots))
	}
	s.Close()
	server.Close()
	goroutinesEnded(testutil.Timeout)
}

func TestStateSurvives(t *testing.T) {
	state := &State{MachineDeployments: map[string]*DeploymentState{
		"d": {Replicas: 2, Machines: []machinev1alpha1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "m"}}}}}}
	raw, err := state.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := UnmarshalState(raw)
	if err != nil || again.MachineDeployments["d"].Replicas != 2 || again.MachineDeployments["d"].Machines[0].Name != "m" {
		t.Errorf("%+v %v", again, err)
	}
	for name, raw := range map[string]string{"text": "x", "no gzip": `{"state":"eA=="}`} {
		if _, err := UnmarshalState([]byte(raw)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
