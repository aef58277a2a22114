package shootplane

import (
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	// address is the address on which the API servers of shoots listen.
	address = "127.0.0.1"
	// PortFile is the file with a shoot's port, in the folder of its data.
	PortFile = "port"
	// firstPort and manyPorts are the range of ports: below the ephemeral ports of operating systems, so that the port
	// of a hibernated shoot is not taken by chance.
	firstPort = 20000
	manyPorts = 12000
)

// ports assigns ports. A shoot keeps its port for its whole life, unless another program takes it while the shoot does not run.
type ports struct {
	dir    string
	keeper fsutil.Keeper

	mu sync.Mutex
	// reserved are the ports of shoots that start or run.
	reserved map[int]string
}

// recorded returns the recorded port of a shoot, 0 if there is none.
func (p *ports) recorded(id string) int {
	data, err := os.ReadFile(filepath.Join(p.dir, id, PortFile))
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || port <= 0 || port > 65535 {
		return 0
	}
	return port
}

// take reserves and returns a shoot's port: the recorded one, or, if another program listens there, a new one that no other shoot has
// and that can be listened on.
func (p *ports) take(id string) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if port := p.recorded(id); port != 0 && canListen(port) {
		p.reserved[port] = id
		return port, nil
	}
	others := p.others()
	begin := p.first(id)
	for i := range manyPorts {
		port := firstPort + (begin+i)%manyPorts
		if others[port] || p.reserved[port] != "" && p.reserved[port] != id || !canListen(port) {
			continue
		}
		p.reserved[port] = id
		return port, nil
	}
	return 0, fmt.Errorf("all ports from %d to %d are taken: delete shoots, or stop programs that listen there",
		firstPort, firstPort+manyPorts-1)
}

// keep records a shoot's port.
func (p *ports) keep(id string, port int) error {
	if p.recorded(id) == port {
		return nil
	}
	if err := fsutil.WriteKept(p.keeper, filepath.Join(p.dir, id, PortFile), []byte(strconv.Itoa(port)+"\n"), 0o600); err != nil {
		return fmt.Errorf("keeping the port of the API server: %w", err)
	}
	return nil
}

// release releases the reservation of a shoot. Its recorded port stays.
func (p *ports) release(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for port, holder := range p.reserved {
		if holder == id {
			delete(p.reserved, port)
		}
	}
}

// others returns the recorded ports of all shoots.
func (p *ports) others() map[int]bool {
	all := map[int]bool{}
	entries, _ := os.ReadDir(p.dir) // there may be none yet
	for _, entry := range entries {
		all[p.recorded(entry.Name())] = true
	}
	return all
}

// first returns where in the range the search for a shoot's port begins. It depends on the folder and the shoot's ID,
// so that several landscapes on one machine, and a recreated shoot, do not collide.
func (p *ports) first(id string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(p.dir + "\x00" + id))
	return int(sum.Sum32() % manyPorts)
}

func canListen(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

func urlOf(port int) string {
	if port == 0 {
		return ""
	}
	return "https://" + net.JoinHostPort(address, strconv.Itoa(port))
}
