// Package stackclient installs and uninstalls stacks for commands and tests. It may import stackpackage and v1alpha1.
package stackclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
	"github.com/gardenlite/gardenlite/internal/retry"
)

// blockedPeriod is how long WaitUninstalled waits for a deletion that is blocked: longer than the period in which the stack
// manager retries one, because the instances may have been deleted since it looked.
const blockedPeriod = 3 * time.Second

// pollInterval is the period in which Wait and WaitUninstalled read an install.
const pollInterval = 50 * time.Millisecond

// Client manages the stacks of a garden.
type Client struct{ client.Client }

// New creates a client for the garden of the REST configuration.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, v1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // polling limits itself
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for the garden: %w", err)
	}
	return &Client{c}, nil
}

// Package is a package that can be installed, with the reference that the Stack Manager resolves.
type Package struct {
	*stackpackage.Package
	Reference string
}

// Find reads the package in a folder or an archive, which it copies to the landscape's folder of packages, or in the
// image of a registry.
func Find(ctx context.Context, name, folder string) (Package, error) {
	info, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) && !strings.HasPrefix(name, ".") && !filepath.IsAbs(name) {
		// It is the user's own process that reads it here. The Stack Manager decides whether to.
		p, err := stackpackage.Open(ctx, name, stackpackage.Options{LoopbackRegistry: true})
		return Package{p, name}, err
	}
	if err != nil {
		return Package{}, err
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(name, "oci-layout")); err != nil {
			return buildInto(name, folder)
		}
		return Package{}, fmt.Errorf(
			"%s is an OCI image layout: pack it as an archive, for example with \"tar -C %s -cf stack.tar .\"", name, name)
	}
	p, err := stackpackage.Open(ctx, stackpackage.FileScheme+filepath.Base(name), stackpackage.Options{Folder: filepath.Dir(name)})
	if err != nil {
		return Package{}, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return Package{}, err
	}
	return keep(p, data, folder)
}

func buildInto(dir, folder string) (Package, error) {
	var image bytes.Buffer
	p, err := stackpackage.Build(dir, &image)
	if err != nil {
		return Package{}, fmt.Errorf("the package in %s is refused: %w", dir, err)
	}
	return keep(p, image.Bytes(), folder)
}

// keep writes the archive of a package to a file that is named after its digest, so that its content does not change
// after the installation. Archives of docker have no digest, so the file is named after that of the archive itself.
func keep(p *stackpackage.Package, archive []byte, folder string) (Package, error) {
	digest := cmp.Or(p.Digest, fmt.Sprintf("sha256:%x", sha256.Sum256(archive)))
	name := strings.ReplaceAll(digest, ":", "-") + ".tar"
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return Package{}, err
	}
	return Package{p, stackpackage.FileScheme + name}, fsutil.WriteFile(filepath.Join(folder, name), archive, 0o600)
}

// notInNames matches the characters that the names of installs cannot have.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// DefaultName returns the default name of an install of the package: its title in lower case.
func (p Package) DefaultName() string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(p.App.Title), "-"), "-")
}

// Images returns the images of the package's controller.
func (p Package) Images() (images []string) {
	var spec corev1.PodSpec
	switch {
	case p.Deployment != nil:
		spec = p.Deployment.Spec.Template.Spec
	case p.Job != nil:
		spec = p.Job.Spec.Template.Spec
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		images = append(images, container.Image)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// newInstall returns an empty install of the kind for the scope of a package.
func newInstall(scope stackpackage.Scope, key client.ObjectKey) v1alpha1.Install {
	object := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	if scope == stackpackage.ClusterScope {
		return &v1alpha1.ClusterStackInstall{ObjectMeta: object}
	}
	return &v1alpha1.StackInstall{ObjectMeta: object}
}

// Change is the result of Install.
type Change string

// These are the results of Install.
const (
	Created   Change = "created"
	Upgraded  Change = "changed"
	Unchanged Change = "unchanged"
	Kept      Change = "kept" // its uninstallation, which was blocked, is taken back
)

// Install creates the namespace and an install of the package, or changes the package of an existing install. It
// creates nothing where no stack can be installed.
func (c *Client) Install(ctx context.Context, p Package, key client.ObjectKey) (v1alpha1.Install, Change, error) {
	if err := v1alpha1.CheckPlace(key.Namespace, key.Name); err != nil {
		return nil, "", err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}}
	if err := c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, "", err
	}
	install := newInstall(p.App.PermissionScope, key)
	install.Request().Package = p.Reference
	err := c.Create(ctx, install)
	if err == nil {
		return install, Created, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, "", err
	}
	change := Unchanged
	err = retry.OnConflict(ctx, func() (err error) {
		if err := c.Get(ctx, key, install); err != nil {
			return err
		}
		if !install.GetDeletionTimestamp().IsZero() {
			change = Kept
			install, err = c.takeBack(ctx, install, p)
			return err
		}
		if install.Request().Reference() == p.Reference {
			return nil
		}
		change = Upgraded
		*install.Request() = v1alpha1.InstallSpec{Package: p.Reference}
		return c.Update(ctx, install)
	})
	return install, change, err
}

// takeBackTimeout limits how long takeBack waits for the Stack Manager.
const takeBackTimeout = 30 * time.Second

// takeBack takes back an uninstallation that is blocked: it detaches the Stack from the install, which then is deleted
// without it, and creates the install anew. The Stack and its controller go on with that one.
func (c *Client) takeBack(ctx context.Context, install v1alpha1.Install, p Package) (v1alpha1.Install, error) {
	key := client.ObjectKeyFromObject(install)
	if synced := install.State().Condition(v1alpha1.Synced); synced.Reason != v1alpha1.ReasonDeletionBlocked {
		return install, fmt.Errorf("%s is being uninstalled: %s", key, install.State().Condition(v1alpha1.Ready).Message)
	}
	stack, err := c.Stack(ctx, install)
	if err != nil {
		return install, err
	}
	if stack != nil {
		stack.OwnerReferences = nil
		if err := c.Update(ctx, stack); err != nil {
			return install, err
		}
	}
	waiting, cancel := context.WithTimeout(ctx, takeBackTimeout)
	defer cancel()
	err = c.poll(waiting, install, "kept", func(string) {}, func(err error) (string, bool, error) {
		return "", apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return install, err
	}
	again := newInstall(p.App.PermissionScope, key)
	again.Request().Package = p.Reference
	return again, c.Create(ctx, again)
}

// Wait waits until an install is ready with the package in its spec, and reports each new message of its condition
// Ready. It returns an error if the package is refused.
func (c *Client) Wait(ctx context.Context, install v1alpha1.Install, report func(string)) error {
	return c.poll(ctx, install, "ready", report, func(err error) (message string, done bool, _ error) {
		state := install.State()
		if err != nil || state.ObservedGeneration != install.GetGeneration() {
			return "", false, err
		}
		ready, synced := state.Condition(v1alpha1.Ready), state.Condition(v1alpha1.Synced)
		if synced.Status == corev1.ConditionFalse {
			return "", false, fmt.Errorf("%s: %s", client.ObjectKeyFromObject(install), synced.Message)
		}
		return ready.Message, state.Package == install.Request().Reference() && ready.Status == corev1.ConditionTrue, nil
	})
}

// poll reads an install until done, which is called with the error of reading it, returns true or an error. It reports
// each new message.
func (c *Client) poll(ctx context.Context, install v1alpha1.Install, state string, report func(string),
	done func(error) (message string, done bool, err error)) error {
	key, last := client.ObjectKeyFromObject(install), ""
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		message, isDone, err := done(c.Get(ctx, key, install))
		if message != "" && message != last {
			last = message
			report(last)
		}
		return isDone, err
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s is not %s: %s", key, state, cmp.Or(last,
			"the Stack Manager has not reported about it; does it run?"))
	}
	return err
}

// List returns the installs of both kinds in the namespace, or in all namespaces if it is empty.
func (c *Client) List(ctx context.Context, namespace string) ([]v1alpha1.Install, error) {
	return v1alpha1.ListInstalls(ctx, c.Client, client.InNamespace(namespace))
}

// Find returns the install with this name, of either kind.
func (c *Client) Find(ctx context.Context, key client.ObjectKey) (v1alpha1.Install, error) {
	for _, scope := range []stackpackage.Scope{stackpackage.ClusterScope, stackpackage.NamespaceScope} {
		install := newInstall(scope, key)
		if err := c.Get(ctx, key, install); err == nil || !apierrors.IsNotFound(err) {
			return install, err
		}
	}
	return nil, fmt.Errorf("there is no stack %s in the namespace %s", key.Name, key.Namespace)
}

// Stack returns the Stack of an install, and nil if there is none.
func (c *Client) Stack(ctx context.Context, install v1alpha1.Install) (*v1alpha1.Stack, error) {
	stack := &v1alpha1.Stack{}
	err := c.Get(ctx, client.ObjectKeyFromObject(install), stack)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(stack, install) {
		return nil, nil
	}
	return stack, err
}

// Uninstall deletes an install. If confirm is set, the instances of its CRDs are deleted as well.
func (c *Client) Uninstall(ctx context.Context, install v1alpha1.Install, confirm bool) error {
	if confirm {
		before := install.DeepCopyObject().(client.Object)
		install.SetAnnotations(labels.Merge(install.GetAnnotations(), map[string]string{v1beta1constants.ConfirmationDeletion: "true"}))
		if err := c.Patch(ctx, install, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return client.IgnoreNotFound(c.Delete(ctx, install))
}

// WaitUninstalled waits until an install is deleted. It returns an error if instances block the deletion.
func (c *Client) WaitUninstalled(ctx context.Context, install v1alpha1.Install, report func(string)) error {
	confirmed := install.GetAnnotations()[v1beta1constants.ConfirmationDeletion] == "true"
	begin := time.Now()
	return c.poll(ctx, install, "uninstalled", report, func(err error) (message string, done bool, _ error) {
		if err != nil {
			return "", apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		ready, synced := install.State().Condition(v1alpha1.Ready), install.State().Condition(v1alpha1.Synced)
		if synced.Reason == v1alpha1.ReasonDeletionBlocked && !confirmed {
			if time.Since(begin) < blockedPeriod {
				return synced.Message, false, nil
			}
			return "", false, fmt.Errorf("%s: %s", client.ObjectKeyFromObject(install), synced.Message)
		}
		if ready.Reason == v1alpha1.ReasonDeleting {
			message = ready.Message
		}
		return message, false, nil
	})
}
