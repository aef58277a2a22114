package flow

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

func TestLastErrors(t *testing.T) {
	quota := WithCodes(errors.New("quota"), corev1beta1.ErrorInfraQuotaExceeded)
	resources := fmt.Errorf("around: %w", WithCodes(errors.New("resources"), corev1beta1.ErrorInfraResourcesDepleted))
	type said struct {
		task  string
		codes []corev1beta1.ErrorCode
	}
	for name, test := range map[string]struct {
		err   error
		said  []said
		final bool
	}{
		"none":  {},
		"plain": {err: errors.New("broken"), said: []said{{}}},
		"coded": {err: quota, said: []said{{codes: []corev1beta1.ErrorCode{"ERR_INFRA_QUOTA_EXCEEDED"}}}, final: true},
		"both": {err: errors.Join(quota, resources, quota), final: true,
			said: []said{{codes: []corev1beta1.ErrorCode{"ERR_INFRA_QUOTA_EXCEEDED", "ERR_INFRA_RESOURCES_DEPLETED"}}}},
		"of tasks": {err: fmt.Errorf("interrupted: %w", Errors{{"a", errors.New("broken")}, {"b", resources}}),
			said: []said{{task: "a"}, {task: "b", codes: []corev1beta1.ErrorCode{"ERR_INFRA_RESOURCES_DEPLETED"}}}},
	} {
		var got []said
		for _, last := range LastErrors(test.err, start) {
			s := said{codes: last.Codes}
			if last.TaskID != nil {
				s.task = *last.TaskID
			}
			got = append(got, s)
			if last.Description == "" || !last.LastUpdateTime.Time.Equal(start) {
				t.Errorf("%s: %+v", name, last)
			}
		}
		if !reflect.DeepEqual(got, test.said) || Final(test.err) != test.final {
			t.Errorf("%s: %+v, final: %t", name, got, Final(test.err))
		}
	}
	if WithCodes(nil, corev1beta1.ErrorInfraQuotaExceeded) != nil {
		t.Error("no error became one")
	}
}
