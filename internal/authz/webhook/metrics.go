package webhook

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

const metricsNamespace = "gardener_admission_controller"

// Metrics are the metrics of scoped access, with their own registry. The first two have the names and labels of the
// reference implementation, so that existing dashboards work; their buckets start lower, because this graph is faster.
type Metrics struct {
	registry      *prometheus.Registry
	updates       *prometheus.HistogramVec
	pathChecks    *prometheus.HistogramVec
	decisions     *prometheus.CounterVec
	restrictions  *prometheus.CounterVec
	failures      *prometheus.CounterVec
	rejected      *prometheus.CounterVec
	pathCheckFrom [graph.KindLease + 1]prometheus.Observer // avoids a lookup of the labels for each path check
}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	counter := func(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metricsNamespace, Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, smallest float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metricsNamespace, Subsystem: "seed_authorizer", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(smallest, 4, 11),
		}, labels)
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		updates: histogram("graph_update_duration_seconds",
			"Duration of updates of the resource dependency graph.", 1e-6, "kind", "operation"),
		pathChecks: histogram("graph_path_check_duration_seconds",
			"Duration of checks whether there is a path in the resource dependency graph.", 5e-8, "fromKind", "toKind"),
		decisions: counter("seed_authorizer", "decisions_total",
			"Decisions of the seed authorizer.", "resource", "verb", "userType", "decision"),
		restrictions: counter("seed_restriction", "decisions_total",
			"Decisions of the seed restriction.", "resource", "operation", "userType", "decision"),
		failures: counter("webhook", "failed_requests_total",
			"Webhook requests that were answered with an HTTP error, by path and status code.", "path", "code"),
		rejected: counter("", "rejected_resources_total", "Total number of resources rejected.", "operation", "kind",
			"namespace", "reason"),
	}
	m.registry.MustRegister(m.updates, m.pathChecks, m.decisions, m.restrictions, m.failures, m.rejected,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for kind := range m.pathCheckFrom {
		m.pathCheckFrom[kind] = m.pathChecks.WithLabelValues(graph.Kind(kind).String(), graph.KindSeed.String())
	}
	return m
}

// ObserveUpdate records the duration of an update of the graph, for graphsync.Config.
func (m *Metrics) ObserveUpdate(kind graph.Kind, operation string, took time.Duration) {
	m.updates.WithLabelValues(kind.String(), operation).Observe(took.Seconds())
}

// Measure returns the graph for the authorizer, with measured path checks.
func (m *Metrics) Measure(g *graph.Graph) *MeasuredGraph { return &MeasuredGraph{g, m} }

// MeasuredGraph is a graph whose path checks are measured.
type MeasuredGraph struct {
	*graph.Graph
	metrics *Metrics
}

// HasPath checks and measures.
func (g *MeasuredGraph) HasPath(from graph.Vertex, seed string) bool {
	start := time.Now()
	found := g.Graph.HasPath(from, seed)
	if int(from.Kind) < len(g.metrics.pathCheckFrom) {
		g.metrics.pathCheckFrom[from.Kind].Observe(time.Since(start).Seconds())
	}
	return found
}

func (m *Metrics) addSynced(synced func() bool) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Subsystem: "seed_authorizer", Name: "graph_synced",
		Help: "1 when the resource dependency graph has synced, 0 until then.",
	}, func() float64 {
		if synced() {
			return 1
		}
		return 0
	}))
}

func (m *Metrics) authorization(attributes authorizer.AttributesRecord, userType seedidentity.Type, allowed bool) {
	resource := "non-resource"
	if attributes.ResourceRequest {
		resource = known(resources, attributes.Resource)
	}
	decision := "no-opinion"
	if allowed {
		decision = "allow"
	}
	m.decisions.WithLabelValues(resource, known(verbs, attributes.Verb), userType.String(), decision).Inc()
}

func (m *Metrics) admission(request *admissionv1.AdmissionRequest, userType seedidentity.Type, allowed bool) {
	decision := "reject"
	if allowed {
		decision = "allow"
	}
	m.restrictions.WithLabelValues(known(resources, request.Resource.Resource), known(operations, string(request.Operation)),
		userType.String(), decision).Inc()
}

func (m *Metrics) failure(path string, status int) {
	m.failures.WithLabelValues(path, strconv.Itoa(status)).Inc()
}

// Rejected records an object that one of the other webhooks refuses, with the labels of the reference implementation.
func (m *Metrics) Rejected(request *admissionv1.AdmissionRequest, reason string) {
	m.rejected.WithLabelValues(string(request.Operation), request.Kind.Kind, request.Namespace, reason).Inc()
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2})
}

// The label values that come from requests. Clients choose these values, so all others are replaced by "other":
// otherwise a client could fill the memory with counters.
var (
	resources = sets.New("backupbuckets", "backupentries", "bastions", "certificatesigningrequests", "cloudprofiles",
		"clusterrolebindings", "configmaps", "controllerdeployments", "controllerinstallations", "controllerregistrations",
		"credentialsbindings", "events", "exposureclasses", "gardenlets", "internalsecrets", "leases", "managedseeds",
		"namespacedcloudprofiles", "namespaces", "projects", "secretbindings", "secrets", "seeds", "serviceaccounts",
		"shoots", "shootstates", "workloadidentities")
	verbs      = sets.New("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "post", "put", "head")
	operations = sets.New("CREATE", "UPDATE", "DELETE", "CONNECT")
)

func known(values sets.Set[string], value string) string {
	if values.Has(value) {
		return value
	}
	return "other"
}
