// Package harness has what the benchmarks share: starting and ending programs, the bare kube-apiserver as a
// baseline, the status of a landscape, medians.
package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Get requests a URL, and returns an error unless the response is 200.
func Get(client *http.Client, url, token string) error {
	_, err := Read(client, url, token)
	return err
}

// Read returns the body of the response for a URL.
func Read(client *http.Client, url, token string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return body, nil
}

// Status is the part of the output of "gardenlite status -o json" that benchmarks read.
type Status struct {
	Memory struct {
		Resident uint64 `json:"resident"`
		LiveHeap uint64 `json:"liveHeap"`
	} `json:"memory"`
	Goroutines int `json:"goroutines"`
	Phases     []struct {
		Name string        `json:"name"`
		Took time.Duration `json:"took"`
	} `json:"phases"`
}

// Parse parses the output.
func (s *Status) Parse(data []byte) error { return json.Unmarshal(data, s) }

// Median returns the median.
func Median(values []time.Duration) time.Duration {
	values = slices.Clone(values)
	slices.Sort(values)
	return values[len(values)/2]
}

// MS prints a duration in milliseconds.
func MS(d time.Duration) string { return strings.TrimSpace(fmt.Sprintf("%d ms", d.Milliseconds())) }
