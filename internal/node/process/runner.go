package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	podsFolder = "pods"
	pidsFolder = "pids"
	// PersistentFolder has the data of PersistentVolumes, of each cluster in a folder of its own.
	PersistentFolder = "volumes"
	// sampleInterval is the period in which the usage of processes is measured.
	sampleInterval = time.Second
)

// Config configures a Runner.
type Config struct {
	// Dir is a folder that only the Runner uses.
	Dir    string
	Images *Images
	Clock  clock.WithTicker
	Log    logr.Logger
}

// Runner runs the processes of a landscape.
type Runner struct {
	cfg    Config
	start  chan func()
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  sync.WaitGroup

	starting sync.Mutex // held until a process that is started is recorded

	mu   sync.Mutex
	pods map[*Pod]struct{}
	// work has the working directories of containers; empty before the first one.
	work string
}

// Start starts a Runner. Before it returns, it kills the processes that an earlier Runner has left behind.
func Start(cfg Config) (*Runner, error) {
	for _, folder := range []string{podsFolder, pidsFolder} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, folder), 0o700); err != nil {
			return nil, fmt.Errorf("making the folder of processes: %w", err)
		}
	}
	r := &Runner{cfg: cfg, start: make(chan func()), pods: map[*Pod]struct{}{}}
	if err := r.endLeftovers(); err != nil {
		return nil, err
	}
	r.removePods(func(node, _ string) bool { return node == "" }) // left of a removal that was interrupted
	r.removeWork()
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.ended.Go(r.startProcesses)
	r.ended.Go(r.measure)
	return r, nil
}

// Close ends all Pods without a grace period, and waits for them.
func (r *Runner) Close() error {
	for _, pod := range r.all() {
		pod.Stop(0)
	}
	r.cancel()
	r.ended.Wait()
	r.removeWork()
	return nil
}

// ImagesChanged returns a channel that is closed when an image is mapped, or not any more.
func (r *Runner) ImagesChanged() <-chan struct{} { return r.cfg.Images.Changed() }

// HasMappedImage reports whether one of a Pod's images is mapped to a program. A Pod with names that cannot be
// those of folders is none that an API server of Kubernetes accepts, and is never run.
func (r *Runner) HasMappedImage(pod *corev1.Pod) bool {
	names := []string{string(pod.UID)}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names = append(names, c.Name)
	}
	for _, v := range pod.Spec.Volumes {
		names = append(names, v.Name)
	}
	if slices.ContainsFunc(names, func(name string) bool { return !isFolder(name) }) {
		return false
	}
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		_, ok := r.cfg.Images.Lookup(c.Image)
		return ok
	})
}

// isFolder reports whether a name can be that of a folder: UIDs, containers and volumes are named so.
func isFolder(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// startProcesses starts processes one after the other, all from one thread, which lives as long as the Runner: the
// kernel kills a process when the thread that has started it ends.
func (r *Runner) startProcesses() {
	runtime.LockOSThread()
	for {
		select {
		case <-r.ctx.Done():
			return
		case start := <-r.start:
			start()
		}
	}
}

// measure measures the usage of the processes, while there are Pods.
func (r *Runner) measure() {
	ticker := r.cfg.Clock.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-ticker.C():
		}
		pods := r.all()
		if len(pods) == 0 {
			continue
		}
		all, err := listProcesses()
		if err != nil {
			r.cfg.Log.Error(err, "Measuring what processes use")
			continue
		}
		groups := map[int]usage{}
		for _, p := range all {
			groups[p.group] = usage{groups[p.group].memory + p.memory, groups[p.group].cpu + p.cpu}
		}
		for _, pod := range pods {
			pod.measured(groups)
		}
	}
}

func (r *Runner) all() []*Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.pods))
}

// ListensAt reports whether a process of a Pod listens on a port. The Pod has the address in the cluster with this URL of
// its API server; the process is reached at this machine's loopback address. Without a Runner, the result is false.
func (r *Runner) ListensAt(apiServer string, at netip.AddrPort) bool {
	return r != nil && slices.ContainsFunc(r.all(), func(p *Pod) bool {
		return p.cfg.APIServer == apiServer && p.hasAddress(at.Addr()) && p.Listens(int(at.Port()))
	})
}

// Process describes a running process.
type Process struct {
	Node      string    `json:"node"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Container string    `json:"container"`
	Program   string    `json:"program"`
	PID       int       `json:"pid"`
	Memory    int64     `json:"memoryBytes"`
	Restarts  int32     `json:"restarts"`
	StartedAt time.Time `json:"startedAt"`
}

// Processes returns the running processes, sorted by Node, namespace, Pod and container.
func (r *Runner) Processes() []Process {
	var all []Process
	for _, pod := range r.all() {
		all = append(all, pod.processes()...)
	}
	slices.SortFunc(all, func(a, b Process) int { return strings.Compare(a.key(), b.key()) })
	return all
}

func (p Process) key() string {
	return strings.Join([]string{p.Node, p.Namespace, p.Pod, p.Container}, "/")
}

func (r *Runner) podDir(uid string) string { return filepath.Join(r.cfg.Dir, podsFolder, uid) }

const (
	// workFile has the path of the folder with the working directories of containers.
	workFile = "work"
	// workPrefix begins the name of that folder, which is in the temporary folder of this machine.
	workPrefix = "gardenlite-work-"
)

// workDir makes the working directory of a container, which lasts as long as the Runner. It is not below the Runner's
// own folder: a relative path would lead from there to the landscape's files, such as the administrator's kubeconfig.
func (r *Runner) workDir(uid, container string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.work == "" {
		work, err := os.MkdirTemp("", workPrefix)
		if err != nil {
			return "", err
		}
		if err := fsutil.WriteFile(filepath.Join(r.cfg.Dir, workFile), []byte(work), 0o600); err != nil {
			return "", errors.Join(err, os.Remove(work))
		}
		r.work = work
	}
	dir := filepath.Join(r.work, uid, container)
	return dir, os.MkdirAll(dir, 0o700)
}

// removeWorkOf removes the working directories of a Pod.
func (r *Runner) removeWorkOf(uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.work == "" {
		return nil
	}
	return fsutil.RemoveAll(filepath.Join(r.work, uid))
}

// removeWork removes the working directories of this Runner, or of an earlier one that was killed.
func (r *Runner) removeWork() {
	file := filepath.Join(r.cfg.Dir, workFile)
	work, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil && strings.HasPrefix(filepath.Base(string(work)), workPrefix) {
		err = fsutil.RemoveAll(string(work))
	}
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		r.cfg.Log.Error(err, "Removing the working directories of containers")
	}
}

// CleanUp removes the folders of Pods for which gone returns true. What cannot be removed is left for the next time.
func (r *Runner) CleanUp(gone func(node, uid string) bool) {
	if r == nil { // all Pods are simulated
		return
	}
	r.removePods(func(node, uid string) bool { return node != "" && gone(node, uid) })
}

// removePods removes the folders of Pods for which gone returns true. The node of a folder without an owner is empty.
func (r *Runner) removePods(gone func(node, uid string) bool) {
	folders, err := os.ReadDir(filepath.Join(r.cfg.Dir, podsFolder))
	if err != nil {
		r.cfg.Log.Error(err, "Looking for files of Pods that are gone")
	}
	for _, folder := range folders {
		dir := r.podDir(folder.Name())
		node, err := os.ReadFile(filepath.Join(dir, ownerFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || !gone(string(node), folder.Name()) {
			continue
		}
		if err := fsutil.RemoveAll(dir); err != nil {
			r.cfg.Log.Error(err, "Removing the files of a Pod that is gone")
		}
	}
}

// ownerFile is the file in the folder of a Pod that contains the name of its Node.
const ownerFile = "node"
