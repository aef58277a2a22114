// Package harness is what benchmarks have in common: programs that they start and end, the bare kube-apiserver that they
// compare with, what a landscape says of itself, medians.
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

// Get asks for a URL, and says what is wrong.
func Get(client *http.Client, url, token string) error {
	_, err := Read(client, url, token)
	return err
}

// Read is what there is at a URL.
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

// Status is what benchmarks read of "gardenlite status -o json".
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

// Parse reads it.
func (s *Status) Parse(data []byte) error { return json.Unmarshal(data, s) }

// Median is the middle one.
func Median(values []time.Duration) time.Duration {
	values = slices.Clone(values)
	slices.Sort(values)
	return values[len(values)/2]
}

// MS prints a duration in milliseconds.
func MS(d time.Duration) string { return strings.TrimSpace(fmt.Sprintf("%d ms", d.Milliseconds())) }
