// Package project reconciles Projects: each has a namespace, made for it or adopted, with the roles of its members, the
// resource quota that is configured for it, and a phase that says how far that is.
//
// A Project that is deleted keeps its namespace as long as a Shoot is in it (the garden itself is asked, not a cache);
// then the namespace is deleted, or given back where it is to be kept, and only after that the Project goes. Every step
// can be repeated after a crash at any point. It may import API types and the finalizers beside it.
package project
