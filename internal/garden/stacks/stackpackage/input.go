package stackpackage

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The controller may run as a process with the rights of who runs the landscape. What it is told by variables and
// arguments must not name an identity other than the one of its Stack, or files other than those of its volumes.
var (
	// identityVariables are variables from which programs take who they are, and where.
	identityVariables = regexp.MustCompile(`^(KUBECONFIG|KUBERNETES_.*|HOME|PATH|TMPDIR|XDG_.*|SSH_AUTH_SOCK)$`)
	// fileVariables are variables that name a file.
	fileVariables = regexp.MustCompile(`(^|_)(FILE|PATH|DIR|FOLDER|HOME|LOCATION|SOCKET|APPLICATION_CREDENTIALS)$`)
	// identityFlags are flags with which clients of Kubernetes take another identity, or another cluster.
	identityFlags = regexp.MustCompile(`^--?([a-z-]*kubeconfig|master|as|as-group|as-uid|as-user-extra)(=|$)`)

	// upwards and home match paths that lead to folders above the working directory or to a home directory, and fileURL
	// the beginning of a URL that names a file.
	upwards = regexp.MustCompile(`(^|[^A-Za-z0-9._-])\.\.($|[^A-Za-z0-9._-])`)
	home    = regexp.MustCompile(`(^|[^A-Za-z0-9._/-])~[A-Za-z0-9._-]*/`)
	fileURL = regexp.MustCompile(`(?i)(^|[^a-z0-9])file:`)
	// absolute matches paths, and what follows the scheme in a URL. A reference with an unknown value may precede it.
	absolute  = regexp.MustCompile(`(^|[^A-Za-z0-9._/)-])(/[^=,:;\s"']*)`)
	reference = regexp.MustCompile(`\$\([A-Za-z0-9._-]+\)`)
)

// standardFiles can be named although they are in no volume.
var standardFiles = []string{"/dev/null", "/dev/stdout", "/dev/stderr"}

// maxInput is the maximum size in bytes of a variable or an argument with its references to other variables.
const maxInput = 128 << 10

// checkInput checks the variables and arguments of a container, those of its probes included.
func checkInput(c *corev1.Container) error {
	var reasons []error
	values := map[string]string{}
	for _, v := range c.Env {
		reasons = append(reasons, prefixed("the variable "+shorten(v.Name)+" ", checkVariable(c, v, values)))
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.Exec != nil {
			reasons = append(reasons, checkArguments(c, probe.Exec.Command, values))
		}
	}
	// The first word of a command names the program, which the package does not choose.
	return errors.Join(append(reasons, checkArguments(c, c.Command, values),
		checkArguments(c, slices.Concat([]string{""}, c.Args), values))...)
}

// checkVariable checks a variable, and adds its value to those to which the next ones can refer.
func checkVariable(c *corev1.Container, v corev1.EnvVar, values map[string]string) error {
	if identityVariables.MatchString(v.Name) {
		return errors.New("is not allowed: the controller has the identity of its Stack, and folders of its own")
	}
	if from := v.ValueFrom; from != nil {
		if from.FieldRef != nil && strings.HasPrefix(from.FieldRef.FieldPath, "metadata.annotations") {
			return errors.New("is not allowed: give it the value itself, not an annotation of the Pod")
		}
		if (from.ConfigMapKeyRef != nil || from.SecretKeyRef != nil) && fileVariables.MatchString(v.Name) {
			return errors.New("names a file: its value has to be in install.yaml, a path below a mountPath of the container")
		}
		return nil
	}
	text, err := expand(v.Value, values)
	values[v.Name] = text
	if err != nil {
		return err
	}
	return checkPaths(c, text, false)
}

// checkArguments checks the words of a command after the first one.
func checkArguments(c *corev1.Container, command []string, values map[string]string) error {
	var reasons []error
	for _, arg := range command[min(1, len(command)):] {
		text, err := expand(arg, values)
		switch {
		case err != nil:
		case identityFlags.MatchString(text):
			err = errors.New("is not allowed: the controller has the identity of its Stack")
		default:
			err = checkPaths(c, text, true)
		}
		reasons = append(reasons, prefixed(fmt.Sprintf("the argument %q ", shorten(arg)), err))
	}
	return errors.Join(reasons...)
}

// expand replaces references $(NAME) to variables with a known value.
func expand(text string, values map[string]string) (string, error) {
	size := len(text)
	expanded := reference.ReplaceAllStringFunc(text, func(reference string) string {
		value, ok := values[reference[2:len(reference)-1]]
		if !ok {
			return reference
		}
		if size += len(value); size > maxInput {
			return ""
		}
		return value
	})
	if size > maxInput {
		return "", fmt.Errorf("has more than %d bytes with the variables to which it refers", maxInput)
	}
	return expanded, nil
}

// checkPaths refuses paths that are not in the container's volumes. A path of one element is allowed if it may be that
// of a URL.
func checkPaths(c *corev1.Container, text string, mayBeURL bool) error {
	if upwards.MatchString(text) || home.MatchString(text) || fileURL.MatchString(text) {
		return errors.New("is not allowed: it names a file by .., a home directory or file:, not by a path below a mountPath")
	}
	for _, match := range absolute.FindAllStringSubmatch(text, -1) {
		switch file := match[2]; {
		case match[1] == ":" && strings.HasPrefix(file, "//"): // a URL
		case mayBeURL && strings.Count(file, "/") == 1:
		case slices.Contains(standardFiles, file):
		case !isMounted(c, path.Clean(file)):
			return fmt.Errorf("is not allowed: it names %s, which is not in a volume of the container: mount a volume there, "+
				"or name a path below a mountPath", shorten(file))
		}
	}
	return nil
}

func isMounted(c *corev1.Container, file string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		in := path.Clean(m.MountPath)
		return in != "/" && (file == in || strings.HasPrefix(file, in+"/"))
	})
}
