package machines

import (
	"context"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
)

// Cloud is what is needed of a cloud to have machines there.
type Cloud interface {
	EnsureInstance(ctx context.Context, spec cloud.InstanceSpec) (cloud.Instance, error)
	DeleteInstance(ctx context.Context, id string) error
	Instance(id string) (cloud.Instance, bool)
	Instances(network string) []cloud.Instance
}

const tagRegion = "region"

// instanceOf is the instance of a machine: its ID is the machine's name. One of that name in another network is none of ours.
func instanceOf(c Cloud, namespace, name string) (cloud.Instance, bool) {
	instance, ok := c.Instance(name)
	return instance, ok && instance.Network == namespace
}
