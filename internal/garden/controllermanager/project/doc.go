// Package project reconciles Projects: each has a namespace, created for it or adopted, with the roles of its members
// and the configured resource quota. The phase of the Project shows the progress.
//
// A Project that is deleted keeps its namespace as long as the namespace contains a Shoot, for which the controller
// asks the API server, not a cache. Then the namespace is deleted, or released if it is to be kept, and only after that
// the Project is gone. Every step can be repeated after a crash at any point. It may import API types and the
// finalizers beside it.
package project
