package process

import "slices"

// Listens says whether one of the Pod's processes listens on a port: through the Pod, no other port of this machine is
// reached.
func (p *Pod) Listens(port int) bool {
	groups := p.groups()
	if len(groups) == 0 {
		return false
	}
	all, err := listProcesses()
	if err != nil {
		return false
	}
	var pids []int
	for _, process := range all {
		if slices.Contains(groups, process.group) {
			pids = append(pids, process.pid)
		}
	}
	return listens(pids, port)
}

func (p *Pod) groups() (all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range slices.Concat(p.init, p.main) {
		if c.child != nil {
			all = append(all, c.child.pid)
		}
	}
	return all
}
