package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// counted has what exists in a landscape: objects in all of its clusters, files, edges, goroutines.
type counted struct {
	objects    map[string]map[string]bool // by cluster
	files      map[string]bool
	edges      int
	goroutines int
	stacks     map[string]int // of goroutines, by where they stand
}

// everything counts what exists now.
func (l *landscape) everything(t *testing.T) counted {
	t.Helper()
	all := counted{objects: map[string]map[string]bool{}, files: map[string]bool{}}
	for _, cluster := range append([]string{""}, l.names...) {
		file := "kubeconfig"
		if cluster != "" {
			file += "-seed-" + cluster
		}
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, file))
		must(t, err)
		config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
		dyn, err := dynamic.NewForConfig(config)
		must(t, err)
		all.objects[cluster], err = inventory(t.Context(), dyn, listableIn(t, config))
		must(t, err)
	}
	must(t, filepath.WalkDir(l.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.Contains(entry.Name(), ".log") {
			all.files[strings.TrimPrefix(path, l.dir)] = true
		}
		return nil // files can be deleted meanwhile
	}))
	var edges struct{ Edges []any }
	must(t, json.Unmarshal([]byte(gardenlite(t, l.dir, "graph", "-o", "json").OK(t).Stdout), &edges))
	all.edges = len(edges.Edges)
	all.stacks = l.stacks(t)
	for _, count := range all.stacks {
		all.goroutines += count
	}
	return all
}

// stacks counts the landscape's goroutines by the functions that they are in. It leaves out those that every list
// leaves behind in an API server for three seconds: everything alone causes hundreds.
func (l *landscape) stacks(t *testing.T) map[string]int {
	t.Helper()
	profile, err := l.kube.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/goroutine").Param("debug", "1").DoRaw(t.Context())
	must(t, err)
	counts := map[string]int{}
	_, records, _ := strings.Cut(string(profile), "\n") // without the total
	for part := range strings.SplitSeq(records, "\n\n") {
		lines := strings.Split(part, "\n")
		var count int
		if _, err := fmt.Sscanf(lines[0], "%d @", &count); err != nil {
			continue
		}
		var functions []string
		for _, line := range lines[1:] {
			if fields := strings.Split(line, "\t"); len(fields) > 2 {
				name, _, _ := strings.Cut(fields[2], "+")
				functions = append(functions, name)
			}
		}
		if len(functions) > 0 && strings.Contains(functions[0], "waitUntilFreshAndBlock") {
			continue
		}
		counts[strings.Join(functions, " < ")] += count
	}
	return counts
}

// sameOf returns an error about what is missing or additional now. A few goroutines more are accepted, because they
// come and go with requests; a Shoot's are hundreds.
func sameOf(before, now counted) error {
	var problems []string
	for cluster, objects := range before.objects {
		if diff := difference(objects, now.objects[cluster]); diff != "" {
			problems = append(problems, fmt.Sprintf("cluster %q: %s", cluster, diff))
		}
	}
	if diff := difference(before.files, now.files); diff != "" {
		problems = append(problems, diff)
	}
	if before.edges != now.edges {
		problems = append(problems, fmt.Sprintf("%d edges, %d before", now.edges, before.edges))
	}
	if now.goroutines > before.goroutines+20 {
		problems = append(problems,
			fmt.Sprintf("%d goroutines, %d before; more of these: %s", now.goroutines, before.goroutines, moreOf(before.stacks, now.stacks)))
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return fmt.Errorf("%s", strings.Join(problems, "\n"))
}

// lacks returns an error if a name contains a text.
func (c counted) lacks(text string) error {
	for _, names := range append(slices.Collect(maps.Values(c.objects)), c.files) {
		for name := range names {
			if strings.Contains(name, text) {
				return fmt.Errorf("there is %s", name)
			}
		}
	}
	return nil
}

// moreOf lists the stacks with the most additional goroutines.
func moreOf(before, now map[string]int) string {
	stacks := slices.SortedFunc(maps.Keys(now), func(a, b string) int { return (now[b] - before[b]) - (now[a] - before[a]) })
	var text strings.Builder
	for _, stack := range stacks[:min(len(stacks), 25)] {
		if more := now[stack] - before[stack]; more > 0 {
			fmt.Fprintf(&text, "\n%d %s", more, stack)
		}
	}
	return text.String()
}

// listensAt reports whether the landscape's process listens at an address: another process may have the port by now.
func (l *landscape) listensAt(t *testing.T, address string) bool {
	t.Helper()
	listening, known := listeners(t, l.cmd.Process.Pid)
	if !known {
		return answers(address)
	}
	return slices.ContainsFunc(listening, func(at netip.AddrPort) bool { return at.String() == address })
}

// answers reports whether a process listens at an address.
func answers(address string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	connection, err := dialer.DialContext(context.Background(), "tcp", address)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}
