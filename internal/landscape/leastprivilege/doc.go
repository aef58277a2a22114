// Package leastprivilege tests that the roles of a landscape's components grant what each component needs, and no
// more.
//
// requests.txt has the requests that the components were seen to make during the life of a landscape.
// TestLeastPrivilege of package e2e goes through that life, and fails if one of these requests is not made again;
// with LEASTPRIVILEGE_RECORD=1 it writes the file anew. Requests that are made only now and then, such as the patch
// of an event, have to be removed from it by hand. The test here removes one right after another from the roles in
// manifests, and checks with the RBAC authorizer of Kubernetes that one of the requests is then refused. Only tests
// use the package.
package leastprivilege
