package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Task is a step of a flow.
type Task struct {
	// Name tells users what the task does; it is unique in the flow, and the taskID of its errors.
	Name string
	// Do does it. It may be called again whatever has become of it before.
	Do func(context.Context) error
	// After are the names of the tasks that come before.
	After []string
	// Skip takes a task out that has nothing to do this time. What comes after it comes after those before it.
	Skip bool
	// Retry is how often the task is tried again within the flow; not at all by default.
	Retry Retry
}

// Flow is what New has found in order.
type Flow struct {
	name  string
	tasks []Task
}

// New puts tasks together. It refuses names that are missing, taken or unknown, and tasks that wait for each other.
func New(name string, tasks ...Task) (*Flow, error) {
	before := map[string][]string{}
	for _, task := range tasks {
		if _, taken := before[task.Name]; taken || task.Name == "" || task.Do == nil {
			return nil, fmt.Errorf("flow %q: task %q has no name, a name that another has, or nothing to do", name, task.Name)
		}
		before[task.Name] = task.After
	}
	for _, task := range tasks {
		for _, other := range task.After {
			if _, known := before[other]; !known {
				return nil, fmt.Errorf("flow %q: task %q comes after %q, which is no task of it", name, task.Name, other)
			}
		}
	}
	if circle := findCircle(tasks, before); circle != nil {
		return nil, fmt.Errorf("flow %q: these tasks wait for each other: %s", name, strings.Join(circle, ", "))
	}
	return &Flow{name: name, tasks: tasks}, nil
}

// Name is the name of the flow.
func (f *Flow) Name() string { return f.name }

// findCircle takes away what waits for nothing until nothing is left, or only what waits for itself.
func findCircle(tasks []Task, before map[string][]string) []string {
	left := make([]string, len(tasks))
	for i, task := range tasks {
		left[i] = task.Name
	}
	for len(left) > 0 {
		waiting := slices.Clone(left)
		waiting = slices.DeleteFunc(waiting, func(name string) bool {
			return !slices.ContainsFunc(before[name], func(other string) bool { return slices.Contains(left, other) })
		})
		if len(waiting) == len(left) {
			return left
		}
		left = waiting
	}
	return nil
}
