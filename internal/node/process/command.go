package process

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	podresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// searchPath is the PATH of all processes.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// errConfig says that the process cannot be configured as the Pod specifies.
var errConfig = errors.New("the container cannot be configured")

// reserved are variables that a Pod cannot set, because shells, loaders and runtimes read code, or paths of code, from
// them. They are examples, not a boundary: a program may read code from any other variable.
var reserved = struct{ names, prefixes []string }{
	names: []string{
		"PATH", "HOME", "TMPDIR",
		"ENV", "SHELLOPTS", "IFS", "CDPATH", "FPATH", "ZDOTDIR", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "GLOBIGNORE",
		"INPUTRC",
		"GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH", "SASL_PATH", "KRB5_CONFIG",
		"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "BUN_OPTIONS", "BUN_INSPECT_PRELOAD",
		"JAVA_HOME", "JRE_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "IBM_JAVA_OPTIONS",
		"OPENJ9_JAVA_OPTIONS", "CLASSPATH",
		"ASPNETCORE_HOSTINGSTARTUPASSEMBLIES", "PHPRC", "PHP_INI_SCAN_DIR", "TK_LIBRARY", "EMACSLOADPATH", "VIMINIT",
		"EXINIT", "VIMRUNTIME",
		"PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "GOFLAGS",
		"GIT_ASKPASS", "GIT_EDITOR", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND",
		"GIT_SSH", "GIT_SSH_COMMAND", "GIT_TEMPLATE_DIR",
	},
	prefixes: []string{
		"BASH", "LD_", "DYLD_", "MALLOC_", "OPENSSL_",
		"PYTHON", "PERL", "RUBY", "GEM_", "BUNDLE_", "BUNDLER_", "LUA_", "TCL", "GUILE_", "PLT", "AWK", "R_", "JULIA_",
		"OCTAVE_", "ERL_", "ELIXIR_", "OCAML", "CAML", "GHC", "NPM_CONFIG_", "npm_config_", "TS_NODE_",
		"DOTNET_", "CORECLR_", "COR_", "COMPlus_", "COMPLUS_", "MONO_",
		"GIO_", "GI_", "GTK_", "GTK2_", "GTK3_", "GDK_", "GST_", "QT_", "QML", "VK_", "GIT_CONFIG",
	},
}

func isReserved(name string) bool {
	return slices.Contains(reserved.names, name) ||
		slices.ContainsFunc(reserved.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// command returns the command of the container's process: the mapped program, whatever command the container names.
func (c *container) command(ctx context.Context) (command, error) {
	mounts, err := c.mounts()
	if err != nil {
		return command{}, err
	}
	variables, err := c.variables(ctx)
	if err != nil {
		return command{}, err
	}
	home := c.homeDir()
	temporary := filepath.Join(home, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return command{}, fmt.Errorf("making the container's folder: %w", err)
	}
	dir, err := c.pod.runner.workDir(c.pod.UID(), c.spec.Name)
	if err != nil {
		return command{}, fmt.Errorf("making the container's working directory: %w", err)
	}
	environment := []string{"PATH=" + searchPath, "HOME=" + home, "TMPDIR=" + temporary, "HOSTNAME=" + c.pod.latest().Name}
	variables = c.checkKubeconfig(mounts, variables)
	identity, err := c.identity(mounts, variables)
	if err != nil {
		return command{}, err
	}
	environment = append(environment, identity...)
	values, left := map[string]string{}, maxTotal
	for _, v := range variables {
		values[v.Name] = v.Value
		value, err := mounts.rewrite(v.Value, &left)
		if err != nil {
			return command{}, err
		}
		environment = append(environment, v.Name+"="+value)
	}
	args, total := slices.Clone(c.image.Args), 0
	for _, arg := range slices.Concat(c.spec.Command[min(1, len(c.spec.Command)):], c.spec.Args) {
		if arg, err = expand(arg, values); err != nil {
			return command{}, fmt.Errorf("%w: argument: %w", errConfig, err)
		}
		if total += len(arg); total > maxTotal {
			return command{}, fmt.Errorf("%w: the arguments have more than %d bytes", errConfig, maxTotal)
		}
		if arg, err = mounts.rewrite(arg, &left); err != nil {
			return command{}, err
		}
		args = append(args, arg)
	}
	return command{program: c.image.Program, args: args, env: environment, dir: mounts.folder(c.spec.WorkingDir, dir)}, nil
}

// variables returns the container's own environment variables in order; the last of several with one name counts.
func (c *container) variables(ctx context.Context) ([]corev1.EnvVar, error) {
	var all []corev1.EnvVar
	values, at, total := map[string]string{}, map[string]int{}, 0
	set := func(name, value string) error {
		if total += len(name) + len(value) + 2; total > maxTotal {
			return fmt.Errorf("%w: the variables have more than %d bytes", errConfig, maxTotal)
		}
		if isReserved(name) {
			return nil
		}
		i, ok := at[name]
		if !ok {
			i, all = len(all), append(all, corev1.EnvVar{Name: name})
			at[name] = i
		}
		values[name], all[i].Value = value, value
		return nil
	}
	for _, from := range c.spec.EnvFrom {
		data, err := c.environmentFrom(ctx, from)
		if err != nil {
			return nil, err
		}
		for key, value := range data {
			if name := from.Prefix + key; len(validation.IsEnvVarName(name)) == 0 {
				if err := set(name, value); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, v := range c.spec.Env {
		value, ok, err := c.valueOf(ctx, v, values)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := set(v.Name, value); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *container) environmentFrom(ctx context.Context, from corev1.EnvFromSource) (map[string]string, error) {
	data := map[string]string{}
	if ref := from.ConfigMapRef; ref != nil {
		cm := &corev1.ConfigMap{}
		if err := c.read(ctx, configMaps, ref.Name, ref.Optional, cm); err != nil {
			return nil, err
		}
		return cm.Data, nil
	}
	if ref := from.SecretRef; ref != nil {
		secret := &corev1.Secret{}
		if err := c.read(ctx, secrets, ref.Name, ref.Optional, secret); err != nil {
			return nil, err
		}
		for key, value := range secret.Data {
			data[key] = string(value)
		}
	}
	return data, nil
}

// read reads an object to which the container's environment refers; an optional object may be missing.
func (c *container) read(ctx context.Context, resource, name string, optional *bool, into runtime.Object) error {
	if err := c.pod.getOptional(ctx, resource, name, optional, into); err != nil {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	return nil
}

// valueOf returns the value of a variable; ok is false if its key is optional and missing.
func (c *container) valueOf(ctx context.Context, v corev1.EnvVar, before map[string]string) (value string, ok bool, err error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		value, err = expand(v.Value, before)
	case from.FieldRef != nil:
		value, err = c.field(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		value, err = podresource.ExtractResourceValueByContainerNameAndNodeAllocatable(from.ResourceFieldRef, c.pod.latest(), c.spec.Name, nil)
	case from.ConfigMapKeyRef != nil:
		ref, cm := from.ConfigMapKeyRef, &corev1.ConfigMap{}
		if err := c.read(ctx, configMaps, ref.Name, ref.Optional, cm); err != nil {
			return "", false, err
		}
		value, ok = cm.Data[ref.Key]
		return value, ok, missing(ok, ref.Optional, ref.Key, "ConfigMap "+ref.Name)
	case from.SecretKeyRef != nil:
		ref, secret := from.SecretKeyRef, &corev1.Secret{}
		if err := c.read(ctx, secrets, ref.Name, ref.Optional, secret); err != nil {
			return "", false, err
		}
		data, ok := secret.Data[ref.Key]
		return string(data), ok, missing(ok, ref.Optional, ref.Key, "Secret "+ref.Name)
	default:
		err = errors.New("this kind of source is not supported for processes")
	}
	if err != nil {
		return "", false, fmt.Errorf("%w: variable %s: %w", errConfig, v.Name, err)
	}
	return value, true, nil
}

// maxExpanded is the maximum size in bytes of a variable or an argument whose references are expanded, and maxTotal that
// of all together. Linux starts no process with more.
const maxExpanded, maxTotal = 128 << 10, 2 << 20

// expand expands the references $(NAME) in a text. With references to references, a short text has values of any size.
func expand(text string, values map[string]string) (string, error) {
	size, value := len(text), expansion.MappingFuncFor(values)
	expanded := expansion.Expand(text, func(name string) string {
		if size > maxExpanded {
			return ""
		}
		v := value(name)
		size += len(v)
		return v
	})
	if size > maxExpanded {
		return "", fmt.Errorf("it has more than %d bytes", maxExpanded)
	}
	return expanded, nil
}

func missing(found bool, optional *bool, key, in string) error {
	if found || ptr.Deref(optional, false) {
		return nil
	}
	return fmt.Errorf("%w: %s has no key %s", errConfig, in, key)
}

// field returns a field of the Pod.
func (c *container) field(path string) (string, error) {
	pod := c.pod.latest()
	c.pod.mu.Lock()
	var ip string
	if len(c.pod.addresses) > 0 {
		ip = c.pod.addresses[0].String()
	}
	c.pod.mu.Unlock()
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return ip, nil
	case "status.hostIP", "status.hostIPs":
		return pod.Status.HostIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

// checkKubeconfig leaves out the variable KUBECONFIG if it names a file that is not in the container's mounts. Other
// files of this machine have identities that are not the Pod's to choose: the landscape's administrator, for example.
func (c *container) checkKubeconfig(mounts mounts, variables []corev1.EnvVar) []corev1.EnvVar {
	i := slices.IndexFunc(variables, isKubeconfig)
	if i < 0 {
		return variables
	}
	files := filepath.SplitList(variables[i].Value)
	if len(files) > 0 && !slices.ContainsFunc(files, func(file string) bool { return !mounts.have(file) }) {
		return variables
	}
	c.event(corev1.EventTypeWarning, "KubeconfigIgnored", fmt.Sprintf(
		"The variable %s of container %s is ignored: it must name files in the container's volume mounts",
		clientcmd.RecommendedConfigPathEnvVar, c.spec.Name))
	return slices.Delete(variables, i, i+1)
}

func isKubeconfig(v corev1.EnvVar) bool { return v.Name == clientcmd.RecommendedConfigPathEnvVar }

// identity returns the variables with which the process finds the API server, and authenticates as the Pod's
// ServiceAccount if the Pod has a token.
func (c *container) identity(mounts mounts, own []corev1.EnvVar) ([]string, error) {
	server, err := url.Parse(c.pod.cfg.APIServer)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server: %w", err)
	}
	environment := []string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}
	folder, ok := mounts.exact(serviceAccountPath)
	if !ok || slices.ContainsFunc(own, isKubeconfig) {
		return environment, nil
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: c.pod.cfg.APIServer, CertificateAuthorityData: c.pod.cfg.CA}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(folder, corev1.ServiceAccountTokenKey)}
	config.Contexts["pod"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "pod", Namespace: c.pod.latest().Namespace}
	config.CurrentContext = "pod"
	path := filepath.Join(c.homeDir(), "kubeconfig")
	data, err := clientcmd.Write(*config)
	if err == nil {
		err = fsutil.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of the container: %w", err)
	}
	return append(environment, clientcmd.RecommendedConfigPathEnvVar+"="+path), nil
}

// serviceAccountPath is where Kubernetes mounts the token of a Pod's ServiceAccount.
const serviceAccountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
