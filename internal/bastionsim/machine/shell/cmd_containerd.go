package shell

import (
	"math"
	"slices"
)

// containerdProgram prints its default configuration as user data asks for it, and runs until it is stopped otherwise: no
// container runs on a simulated machine.
func containerdProgram(p *Process, f flags) int {
	if slices.Equal(f.args, []string{"config", "default"}) {
		p.Printf("%s", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\n  SystemdCgroup = false\n")
		return 0
	}
	return boolStatus(p.sleep(p.sh.ctx, math.MaxInt64) == nil)
}
