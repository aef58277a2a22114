package main

// The metrics of the API server and of the admission controller.
const (
	webhookDuration    = "apiserver_authorization_webhook_duration_seconds"
	webhookEvaluations = "apiserver_authorization_webhook_evaluations_total"
	conditionDuration  = "apiserver_authorization_match_condition_evaluation_seconds"
	conditionExcluded  = "apiserver_authorization_match_condition_exclusions_total"
	allDuration        = "authorization_duration_seconds" // RBAC, Node and the webhook together
	cpuSeconds         = "process_cpu_seconds_total"

	authorizerDecisions  = "gardener_admission_controller_seed_authorizer_decisions_total"
	restrictionDecisions = "gardener_admission_controller_seed_restriction_decisions_total"
	pathChecks           = "gardener_admission_controller_seed_authorizer_graph_path_check_duration_seconds"

	admissionDuration  = "apiserver_admission_webhook_admission_duration_seconds"
	admissionCondition = "apiserver_admission_match_condition_evaluation_seconds"
	admissionExcluded  = "apiserver_admission_match_condition_exclusions_total"
	restriction        = `name="seed-restriction.gardener.cloud"`
)

// counters reads the metrics of the API server and of the admission controller.
func counters(l *landscape, admin *user) (metrics, error) {
	server, err := admin.scrape(l.host, "apiserver_authorization_", allDuration, cpuSeconds, admissionDuration,
		admissionCondition, admissionExcluded)
	if err != nil {
		return nil, err
	}
	// Of the admission controller only its own: it is the same process, whose CPU time would be counted twice.
	asking, err := l.webhookClient()
	if err != nil {
		return nil, err
	}
	controller, err := asking.scrape(l.webhooks, "gardener_admission_controller_")
	if err != nil {
		return nil, err
	}
	return server.plus(controller), nil
}
