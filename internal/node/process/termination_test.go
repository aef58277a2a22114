package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The message of a container is what its process has written to the terminationMessagePath, with the limits of a kubelet.
func TestTerminationMessage(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("of another"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := make([]string, maxMessageLines+1)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d\n", i)
	}
	fallback, file := corev1.TerminationMessageFallbackToLogsOnError, corev1.TerminationMessageReadFile
	for name, test := range map[string]struct {
		script string
		policy corev1.TerminationMessagePolicy
		want   string
	}{
		"written":               {`printf bye > $1; echo log; exit 1`, fallback, "bye"},
		"nothing":               {`echo log; exit 1`, file, ""},
		"too long":              {`printf '%5000s' end > $1`, file, strings.Repeat(" ", maxMessage-3) + "end"},
		"log of a failure":      {`echo one >&2; echo two >&2; exit 1`, fallback, "one\ntwo\n"},
		"log of a success":      {`echo one`, fallback, ""},
		"last lines of the log": {`for i in $(seq 0 80); do echo line $i; done; exit 1`, fallback, strings.Join(lines[1:], "")},
		"last bytes of the log": {`printf '%5000s' end; exit 1`, fallback, strings.Repeat(" ", maxMessageFromLog-3) + "end"},
		"removed":               {`rm $1`, file, ""},
		"a link out of the Pod": {`ln -sf ` + secret + ` $1`, file,
			"reading the termination message: openat termination-message: path escapes from parent"},
		"a pipe":                  {`rm $1; mkfifo $1`, file, "reading the termination message: it is not a regular file"},
		"a folder":                {`rm $1; mkdir $1`, file, "reading the termination message: it is not a regular file"},
		"path within an argument": {`printf bye > ${2#--message=}`, file, "bye"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.script)
			pod := newPod("p", corev1.RestartPolicyNever)
			c := &pod.Spec.Containers[0]
			c.TerminationMessagePath, c.TerminationMessagePolicy = corev1.TerminationMessagePathDefault, test.policy
			c.Args = []string{corev1.TerminationMessagePathDefault, "--message=" + corev1.TerminationMessagePathDefault}
			p := w.run(pod)
			<-p.Done()
			if _, main, _ := p.Statuses(); main[0].State.Terminated.Message != test.want {
				t.Errorf("the message is %q, want %q", main[0].State.Terminated.Message, test.want)
			}
		})
	}
}

// A run does not have the message of the one before, and the containers of a Pod share the limit of the Pod.
func TestTerminationMessages(t *testing.T) {
	w := newWorld(t, `if mkdir $HOME/ran 2>/dev/null; then printf '%4096s' first > $1; fi; exit 1`)
	pod := newPod("p", corev1.RestartPolicyAlways)
	c := &pod.Spec.Containers[0]
	c.TerminationMessagePath, c.Args = "/m", []string{"/m"}
	for i := range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("simulated-", i)})
	}
	p := w.run(pod)
	// The first run is followed by another one at once, and by a delay then.
	s := until(t, p, "waiting", waits("CrashLoopBackOff"))
	if last := s.LastTerminationState.Terminated; s.RestartCount != 1 || last == nil || last.Message != "" {
		t.Errorf("after the second run: %+v", s)
	}
	if message := p.main[0].limitMessage(make([]byte, maxMessage)); len(message) != maxMessagesOfPod/4 {
		t.Errorf("one of four containers has %d bytes", len(message))
	}
}
