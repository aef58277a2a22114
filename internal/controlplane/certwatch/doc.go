// Package certwatch reloads certificates when their files change. All of a process share one watcher: an operating
// system gives a user only some, Linux 128, and Kubernetes' providers of certificates have one each. It imports nothing
// of the project.
package certwatch
