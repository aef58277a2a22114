package authentication

import (
	"testing"

	gardenauthentication "github.com/gardener/gardener/pkg/apis/authentication"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestExpiration(t *testing.T) {
	for seconds, want := range map[int64]field.ErrorType{-1: field.ErrorTypeInvalid, 599: field.ErrorTypeInvalid, 600: "",
		1<<32 - 1: "", 1 << 32: field.ErrorTypeTooLong} {
		errs := ValidateKubeconfigRequest(
			&gardenauthentication.KubeconfigRequest{Spec: gardenauthentication.KubeconfigRequestSpec{ExpirationSeconds: seconds}})
		if want == "" && len(errs) == 0 {
			continue
		}
		if len(errs) != 1 || errs[0].Type != want || errs[0].Field != "spec.expirationSeconds" {
			t.Errorf("%d: %v", seconds, errs)
		}
	}
}
