package machine

import (
	"fmt"
	"runtime/debug"
)

// contain runs what happens on the machine and makes an error of a panic: it must not end the process, in which all other
// machines are. The operator's log says where it was; the machine's users are not told.
func (m *Machine) contain(what string, f func() (int, error)) (status int, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic in %s: %v", what, reason)
			m.cfg.Log.Error(err, "something on a machine failed", "machine", m.cfg.Hostname, "stack", string(debug.Stack()))
			status, err = 1, fmt.Errorf("%s failed: internal error", what)
		}
	}()
	return f()
}
