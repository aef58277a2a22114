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

// condition returns the status of a condition, or "" if the condition is missing.
func condition(conditions []gardencore.Condition, kind gardencore.ConditionType) gardencore.ConditionStatus {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

func conditionStatus(conditions []gardencore.Condition, kind gardencore.ConditionType) any {
	return orUnknown(string(condition(conditions, kind)))
}

func orUnknown(value string) any {
	if value == "" {
		return resource.Unknown
	}
	return value
}
