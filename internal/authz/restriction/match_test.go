package restriction

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// TestMatchConditions checks that every request that the webhook would restrict reaches it, and that no condition
// returns an error: the API server evaluates the conditions first, and an error would refuse any user's request.
func TestMatchConditions(t *testing.T) {
	var expressions []cel.ExpressionAccessor
	for _, c := range MatchConditions() {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	evaluator := compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	fail := admissionregistrationv1.Fail
	matcher := matchconditions.NewMatcher(evaluator, &fail, "webhook", "validating", "seed-restriction")

	accounts := func(namespace string) []string {
		return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
	}
	for _, test := range []struct {
		name   string
		groups []string
		want   bool
	}{
		{gardenletA.Username, gardenletA.Groups, true},
		{extensionA.Username, extensionA.Groups, true},
		{"gardener.cloud:system:seed:<ambiguous>", gardenletA.Groups, true},
		{"admin", []string{"system:masters"}, false},
		{"gardener.cloud:system:seed:a", nil, false},
		{"", nil, false},
		{"", []string{}, false},
		{"system:anonymous", []string{"system:unauthenticated"}, false},
		{"system:serviceaccount:garden:extension-x", accounts("garden"), false},
		{"system:serviceaccount:kube-system:generic-garbage-collector", accounts("kube-system"), false},
	} {
		attributes := admission.NewAttributesRecord(bucket("a"), nil, backupBuckets.kind(), "", "new", backupBuckets.resource,
			"", admission.Create, nil, false,
			&user.DefaultInfo{Name: test.name, Groups: test.groups})
		result := matcher.Match(context.Background(), &admission.VersionedAttributes{
			Attributes: attributes, VersionedKind: backupBuckets.kind(), VersionedObject: attributes.GetObject()}, nil, nil)
		if result.Error != nil || result.Matches != test.want {
			t.Errorf("%q of %v: matches %t, want %t; %v", test.name, test.groups, result.Matches, test.want, result.Error)
		}
		if restricted := seedidentity.OfAuthentication(
			authenticationv1.UserInfo{Username: test.name, Groups: test.groups}).Type != seedidentity.None; restricted && !result.Matches {
			t.Errorf("%q of %v does not reach the webhook", test.name, test.groups)
		}
	}
}
