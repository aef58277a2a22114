package core

import (
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

func lastOperation(op *gardencore.LastOperation) any {
	if op == nil {
		return resource.Pending
	}
	return fmt.Sprintf("%s %s (%d%%)", op.Type, op.State, op.Progress)
}

func operationState(op *gardencore.LastOperation) any {
	if op == nil {
		return resource.Pending
	}
	return string(op.State)
}

func operationProgress(op *gardencore.LastOperation) any {
	if op == nil {
		return int64(0)
	}
	return int64(op.Progress)
}

func conditionStatus(conditions []gardencore.Condition, kind gardencore.ConditionType) any {
	return resource.OrUnknown(resource.Condition(conditions, kind))
}
