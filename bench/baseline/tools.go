// Package baseline names the public programs that gardenlite is compared with, so that go.mod keeps their versions.
package baseline

import (
	_ "github.com/gardener/gardener/cmd/gardener-admission-controller/app"
	_ "github.com/gardener/gardener/cmd/gardener-apiserver/app"
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "sigs.k8s.io/kwok/pkg/kwok/cmd"
)
