// Package leastprivilege holds the components of a landscape to roles that give each what it needs and no more.
//
// requests.txt is what they were seen to ask for in the life of a landscape. TestLeastPrivilege of package e2e lives it,
// and fails if one of these requests is not made again; with LEASTPRIVILEGE_RECORD=1 it writes the file anew. What
// is asked for only now and then, such as the patch of an event, is to be taken from it again. The test here
// takes right after right from the roles in manifests, and looks, by the RBAC authorizer of Kubernetes, whether one of the
// requests is then refused. No program uses the package.
package leastprivilege
