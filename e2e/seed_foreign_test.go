package e2e

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// thief is the administrator of a seed, who copies what describes their own Shoot into a namespace that is named like
// that of a Shoot in another seed.
type thief struct {
	seed        dynamic.Interface
	own, victim *shoot
	copies      []stolen
}

// stolen is a copy, with the expression for what its status says while it is refused; "" if it has none.
type stolen struct {
	resource schema.GroupVersionResource
	name     string
	says     string
}

var (
	machineGroup   = schema.GroupVersion{Group: "machine.sapcloud.io", Version: "v1alpha1"}
	extensionGroup = schema.GroupVersion{Group: "extensions.gardener.cloud", Version: "v1alpha1"}

	secretsInSeed    = corev1.SchemeGroupVersion.WithResource("secrets")
	namespacesInSeed = corev1.SchemeGroupVersion.WithResource("namespaces")
	machinesInSeed   = machineGroup.WithResource("machines")
	clustersInSeed   = extensionGroup.WithResource("clusters")
)

// seedTakesNothing: the administrator of a seed gets neither the data of another seed's Shoot nor its machines, by
// objects with the names and namespaces of that Shoot's; not after a restart either, and not by deleting them.
func (l *landscape) seedTakesNothing(t *testing.T) {
	create := func(name, seed string) *shoot {
		return l.newShoot(t, name, func(spec map[string]any) {
			spec["seedName"] = seed
			worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
			worker["minimum"], worker["maximum"] = int64(1), int64(1)
		})
	}
	own, victim := create("thief", "local"), create("victim", "local-2")
	own.waitForSucceeded(t)
	victim.waitForSucceeded(t)
	client := clientOf(t, victim.admin(t))
	keep(t, client)
	node, address := victim.nodeAddress(t)
	door := victim.newBastion(t, "door", "127.0.0.1/32")
	unharmed := func(when string) {
		t.Helper()
		isKept(t, client)
		if _, err := login(t.Context(), door.address, "127.0.0.2", ssh.PublicKeys(door.signer)); err == nil {
			t.Errorf("%s, the firewall of the victim's Bastion is open", when)
		}
		through, err := login(t.Context(), door.address, "127.0.0.1", ssh.PublicKeys(door.signer))
		if err != nil {
			t.Errorf("%s, the victim's Bastion: %v", when, err)
			return
		}
		defer through.Close()
		if got, err := onNode(through, address, victim.nodeSigner(t), "hostname"); err != nil || got != node {
			t.Errorf("%s, the victim's node: %q, %v", when, got, err)
		}
	}
	unharmed("before the theft")

	th := &thief{seed: l.seedDynamic(t), own: own, victim: victim}
	th.steal(t, node, door)
	th.isRefused(t)
	unharmed("after the theft")
	l.stop(t)
	l.up(t)
	th.seed = l.seedDynamic(t)
	th.tryAgain(t)
	th.isRefused(t)
	unharmed("after a restart")
	th.cleanUp(t)
	unharmed("after the copies are deleted")

	for _, s := range []*shoot{own, victim} {
		s.delete(t)
	}
	own.waitGone(t)
	victim.waitGone(t)
}

// steal makes the copies. They lack nothing that an own Shoot has: only the owner of the names is another one.
func (th *thief) steal(t *testing.T, node string, door *bastion) {
	t.Helper()
	create := func(in dynamic.ResourceInterface, object map[string]any) {
		t.Helper()
		_, err := in.Create(t.Context(), &unstructured.Unstructured{Object: object}, created)
		must(t, err)
	}
	create(th.seed.Resource(namespacesInSeed), meta("v1", "Namespace", "", th.victim.id(), nil))
	cluster, err := th.seed.Resource(clustersInSeed).Get(t.Context(), th.own.id(), metav1.GetOptions{})
	must(t, err)
	create(th.seed.Resource(clustersInSeed), meta(extensionGroup.String(), "Cluster", "", th.victim.id(),
		map[string]any{"spec": cluster.Object["spec"]}))

	list, err := th.seed.Resource(machinesInSeed).Namespace(th.own.id()).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	machine := list.Items[0].Object
	class, _, _ := unstructured.NestedString(machine, "spec", "class", "name")
	classes := machineGroup.WithResource("machineclasses")
	ofClass, err := th.seed.Resource(classes).Namespace(th.own.id()).Get(t.Context(), class, metav1.GetOptions{})
	must(t, err)
	userData, _, _ := unstructured.NestedString(ofClass.Object, "secretRef", "name")
	for _, name := range []string{"kube-apiserver", "cloudprovider", "machine-controller-manager", userData} {
		th.copy(t, name, stolen{secretsInSeed, name, ""}, nil)
	}
	th.copy(t, class, stolen{classes, class, ""}, nil)
	services := corev1.SchemeGroupVersion.WithResource("services")
	th.copy(t, "kube-apiserver", stolen{services, "kube-apiserver", ""}, func(service map[string]any) {
		service["spec"] = map[string]any{"type": "LoadBalancer", "ports": []any{map[string]any{"port": int64(443)}}}
	})
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	const elsewhere = "the garden has no such Shoot on this seed"
	th.copy(t, "kube-apiserver", stolen{deployments, "kube-apiserver", "runs in another seed|" + elsewhere}, nil)
	infrastructures := extensionGroup.WithResource("infrastructures")
	th.copy(t, th.own.name, stolen{infrastructures, th.victim.name, elsewhere}, nil)
	network := th.victim.id()
	th.copy(t, list.Items[0].GetName(),
		stolen{machinesInSeed, node, "in network " + network + ": the network: not found"},
		func(machine map[string]any) { unstructured.RemoveNestedField(machine, "spec", "providerID") })

	bastions := extensionGroup.WithResource("bastions")
	for _, name := range []string{door.name, "own"} { // one of the victim's name, and one more in the victim's network
		spec := map[string]any{"type": "local", "userData": "IyEvYmluL3NoCg==",
			"ingress": []any{map[string]any{"ipBlock": map[string]any{"cidr": "127.0.0.0/8"}}}}
		create(th.seed.Resource(bastions).Namespace(network),
			meta(extensionGroup.String(), "Bastion", network, name, map[string]any{"spec": spec}))
		th.copies = append(th.copies, stolen{bastions, name, "the shoot has no network " + network + " in the cloud"})
	}
}

// copy copies an object of the own Shoot's namespace into that of the victim.
func (th *thief) copy(t *testing.T, name string, to stolen, change func(map[string]any)) {
	t.Helper()
	obj, err := th.seed.Resource(to.resource).Namespace(th.own.id()).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	delete(obj.Object, "metadata")
	delete(obj.Object, "status")
	obj.SetName(to.name)
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	if change != nil {
		change(obj.Object)
	}
	_, err = th.seed.Resource(to.resource).Namespace(th.victim.id()).Create(t.Context(), obj, created)
	must(t, err)
	th.copies = append(th.copies, to)
}

// tryAgain requests everything once more, so that what a status says is of now.
func (th *thief) tryAgain(t *testing.T) {
	t.Helper()
	for _, s := range th.copies {
		if s.says == "" {
			continue
		}
		in := th.seed.Resource(s.resource).Namespace(th.victim.id())
		patch := func(text string, subresources ...string) {
			_, err := in.Patch(t.Context(), s.name, types.MergePatchType, []byte(text), metav1.PatchOptions{},
				subresources...)
			must(t, err)
		}
		patch(`{"status":null}`, "status")
		patch(`{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`)
	}
}

// isRefused waits until each copy says why nothing is done for it.
func (th *thief) isRefused(t *testing.T) {
	t.Helper()
	for _, s := range th.copies {
		if s.says == "" {
			continue
		}
		eventually(t, waitTimeout, func(ctx context.Context) error {
			obj, err := th.seed.Resource(s.resource).Namespace(th.victim.id()).Get(ctx, s.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status := fmt.Sprint(obj.Object["status"]); !regexp.MustCompile(s.says).MatchString(status) {
				return fmt.Errorf("%s %s does not say %q: %s", s.resource.Resource, s.name, s.says, status)
			}
			return nil
		})
	}
}

// cleanUp deletes the copies, the data with them, and waits until they are gone.
func (th *thief) cleanUp(t *testing.T) {
	t.Helper()
	for _, s := range th.copies {
		in := th.seed.Resource(s.resource).Namespace(th.victim.id())
		_, err := in.Patch(t.Context(), s.name, types.MergePatchType, confirmed, metav1.PatchOptions{})
		must(t, err)
		if s.says == "" {
			continue // what the others need, until they are gone
		}
		must(t, in.Delete(t.Context(), s.name, metav1.DeleteOptions{}))
		eventually(t, waitTimeout, func(ctx context.Context) error {
			obj, err := in.Get(ctx, s.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s %s is there: %v, %v", s.resource.Resource, s.name, obj, err)
		})
	}
	must(t, th.seed.Resource(clustersInSeed).Delete(t.Context(), th.victim.id(), metav1.DeleteOptions{}))
	namespaces := th.seed.Resource(namespacesInSeed)
	must(t, namespaces.Delete(t.Context(), th.victim.id(), metav1.DeleteOptions{}))
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, th.victim.id(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace of the copies is there: %v", err)
	})
}
