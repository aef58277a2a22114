package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// metrics are the values of a /metrics page by their series, or the difference of two pages.
type metrics map[string]float64

// scrape reads the metrics page; only lines that begin with one of the names are kept.
func (u *user) scrape(host string, names ...string) (metrics, error) {
	page, err := u.ask(http.MethodGet, host+"/metrics", nil, http.StatusOK)
	if err != nil {
		return nil, err
	}
	found := metrics{}
	lines := bufio.NewScanner(bytes.NewReader(page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !hasPrefix(line, names) {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of %s: %q: %w", host, line, err)
		}
		found[line[:at]] = value
	}
	return found, lines.Err()
}

func hasPrefix(line string, names []string) bool {
	for _, name := range names {
		if strings.HasPrefix(line, name) {
			return true
		}
	}
	return false
}

func (m metrics) minus(before metrics) metrics {
	difference := metrics{}
	for series, value := range m {
		difference[series] = value - before[series]
	}
	return difference
}

func (m metrics) plus(other metrics) metrics {
	sum := metrics{}
	for _, one := range []metrics{m, other} {
		for series, value := range one {
			sum[series] += value
		}
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
