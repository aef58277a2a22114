package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// The metrics of the API server and of the admission controller.
const (
	webhookDuration    = "apiserver_authorization_webhook_duration_seconds"
	webhookEvaluations = "apiserver_authorization_webhook_evaluations_total"
	conditionDuration  = "apiserver_authorization_match_condition_evaluation_seconds"
	conditionExcluded  = "apiserver_authorization_match_condition_exclusions_total"
	allDuration        = "authorization_duration_seconds" // RBAC, Node and the webhook together
	cpuSeconds         = "process_cpu_seconds_total"

	authorizerDecisions  = "gardener_admission_controller_seed_authorizer_decisions_total"
	restrictionDecisions = "gardener_admission_controller_seed_restriction_decisions_total"
	pathChecks           = "gardener_admission_controller_seed_authorizer_graph_path_check_duration_seconds"

	admissionDuration  = "apiserver_admission_webhook_admission_duration_seconds"
	admissionCondition = "apiserver_admission_match_condition_evaluation_seconds"
	admissionExcluded  = "apiserver_admission_match_condition_exclusions_total"
	restriction        = `name="seed-restriction.gardener.cloud"`
)

// metrics are the values of a /metrics page by their series, or the difference of two pages.
type metrics map[string]float64

// scrape reads the metrics page; only lines that begin with one of the names are kept.
func (u *user) scrape(ctx context.Context, names ...string) (metrics, error) {
	page, err := u.ask(ctx, http.MethodGet, "/metrics", nil, http.StatusOK)
	if err != nil {
		return nil, err
	}
	return harness.Metrics(page, names...)
}

// counters reads the metrics of the API server and of the admission controller.
func (a *actors) counters(ctx context.Context) (metrics, error) {
	server, err := a.admin.scrape(ctx, "apiserver_authorization_", allDuration, cpuSeconds, admissionDuration,
		admissionCondition, admissionExcluded)
	if err != nil {
		return nil, err
	}
	// Of the admission controller only its own: it is the same process, whose CPU time would be counted twice.
	controller, err := a.webhook.scrape(ctx, "gardener_admission_controller_")
	return server.plus(controller), err
}

func (m metrics) minus(before metrics) metrics {
	difference := metrics{}
	for series, value := range m {
		difference[series] = value - before[series]
	}
	return difference
}

func (m metrics) plus(other metrics) metrics {
	sum := maps.Clone(m)
	for series, value := range other {
		sum[series] += value
	}
	return sum
}

var label = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// each calls f for every series of the name that has all the labels, which are written as in a query: name="value".
func (m metrics) each(name string, labels []string, f func(labels map[string]string, value float64)) {
	for series, value := range m {
		seriesName, rest, _ := strings.Cut(series, "{")
		if seriesName != name {
			continue
		}
		has := map[string]string{}
		for _, match := range label.FindAllStringSubmatch(rest, -1) {
			has[match[1]] = match[2]
		}
		if hasAll(has, labels) {
			f(has, value)
		}
	}
}

func hasAll(has map[string]string, labels []string) bool {
	for _, wanted := range labels {
		match := label.FindStringSubmatch(wanted)
		if match == nil || has[match[1]] != match[2] {
			return false
		}
	}
	return true
}

// sum adds up every series of the name that has all the labels.
func (m metrics) sum(name string, labels ...string) float64 {
	sum := 0.0
	m.each(name, labels, func(_ map[string]string, value float64) { sum += value })
	return sum
}

// histogram adds up every histogram of the name that has all the labels.
func (m metrics) histogram(name string, labels ...string) histogram {
	h := histogram{atMost: map[float64]float64{}, sum: m.sum(name+"_sum", labels...), count: m.sum(name+"_count", labels...)}
	m.each(name+"_bucket", labels, func(labels map[string]string, value float64) {
		if bound, err := strconv.ParseFloat(labels["le"], 64); err == nil && !math.IsInf(bound, 1) {
			h.atMost[bound] += value
		}
	})
	return h
}

// histogram has cumulative counts by upper bound, as Prometheus does.
type histogram struct {
	atMost     map[float64]float64
	sum, count float64
}

func (h histogram) mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return time.Duration(h.sum / h.count * float64(time.Second))
}

// within returns the share of requests that took at most bound, which has to be the bound of a bucket.
func (h histogram) within(bound time.Duration) (float64, error) {
	n, ok := h.atMost[bound.Seconds()]
	if !ok || h.count == 0 {
		return 0, fmt.Errorf("there is no bucket for %s, or nothing in the histogram", bound)
	}
	return n / h.count, nil
}
