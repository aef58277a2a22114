package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Task is a step of a flow.
type Task struct {
	// Name tells users what the task does. It is unique in the flow, and the taskID of the task's errors.
	Name string
	// Do executes the task. It must be idempotent, because it may be called again after any result.
	Do func(context.Context) error
	// After are the names of the tasks that must succeed before this one starts.
	After []string
	// Skip omits the task from this run. Its successors then wait for its predecessors.
	Skip bool
}

// Flow is a set of tasks that New has checked.
type Flow struct {
	name  string
	tasks []Task
}

// New creates a flow. It refuses missing, duplicate or unknown names, and circular dependencies.
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

// findCircle removes tasks without remaining predecessors until none is left, or returns the rest, which has a circle.
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
