package accesscheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apirand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

// Outcome is the outcome of an attack.
type Outcome string

const (
	// Refused is an attack that the garden refused, Open one that succeeded.
	Refused Outcome = "refused"
	Open    Outcome = "open"
	// Allowed is a control request that was allowed, as it has to be.
	Allowed Outcome = "allowed"
	// Undecided is an answer that is neither a success nor a refusal, or a control request that was not allowed.
	Undecided Outcome = "undecided"
	// Skipped is an attack whose preconditions are not met.
	Skipped Outcome = "skipped"
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{Refused, Open, Allowed, Undecided, Skipped} }

const (
	attackTimeout = 20 * time.Second
	// defaultWatchEnds is the time within which a watch has to end once the seed has no path to the object.
	defaultWatchEnds = 5 * time.Second
)

// Result is the result of one attack.
type Result struct {
	// Kind is the number of the kind of attack in docs/scoped-access.md; 0 for attacks of no particular kind.
	Kind    int     `json:"kind"`
	Attack  string  `json:"attack"`
	As      As      `json:"as"`
	Outcome Outcome `json:"outcome"`
	// Request is the method and path of the request.
	Request string `json:"request,omitempty"`
	// Code and Answer are the status code and the message of the garden's response; a success has no message.
	Code   int    `json:"code,omitempty"`
	Answer string `json:"answer,omitempty"`
	// Unexpected is set if the attack was refused for another reason than in gardenlite.
	Unexpected bool `json:"unexpected,omitempty"`
}

// Report has the results of all attacks.
type Report struct {
	Garden  string          `json:"garden"`
	Seed    string          `json:"seed"`
	Victim  string          `json:"victim"`
	Results []Result        `json:"results"`
	Counts  map[Outcome]int `json:"counts"`
}

// Holds reports whether no attack is Open or Undecided.
func (r *Report) Holds() bool { return r.Counts[Open]+r.Counts[Undecided] == 0 }

// Options are the options of Run.
type Options struct {
	// Admin is the configuration of an administrator of the garden, who impersonates the attackers.
	Admin *rest.Config
	// Live creates a throwaway seed, and removes it at the end. Otherwise nothing is created.
	Live bool
	// Victim is the name of the attacked Seed; if empty, the Seed with the most Shoots.
	Victim string
	// AllReads says that gardenlets and extensions may read all objects that belong to one seed each.
	AllReads bool

	watchEnds time.Duration // default defaultWatchEnds
}

type runner struct {
	*world
	watchEnds time.Duration
	config    *rest.Config
	attackers map[As]*client
}

// Run tries all attacks. Before it returns, it removes the objects that it has created, also if the context ends.
func Run(ctx context.Context, o Options) (*Report, error) { return run(ctx, o, catalogue()) }

func run(ctx context.Context, o Options, attacks []attack) (report *Report, err error) {
	r, err := newRunner(o)
	if err != nil {
		return nil, err
	}
	if err := r.look(ctx, o.Victim); err != nil {
		return nil, err
	}
	if o.Live {
		if err := r.cleanUp(ctx); err != nil {
			return nil, fmt.Errorf("removing what another check has left: %w", err)
		}
		defer func() {
			if clean := r.cleanUp(ctx); clean != nil {
				clean = fmt.Errorf("removing the throwaway seed %s: %w; another check removes what is left", r.seed, clean)
				err = errors.Join(err, clean)
			}
		}()
		if err := r.populate(ctx); err != nil {
			return nil, err
		}
		r.awaitGraph(ctx, r.attackers[Gardenlet])
	}
	report = &Report{Garden: r.admin.host, Seed: r.seed, Victim: r.victim, Counts: map[Outcome]int{}}
	for _, a := range attacks {
		result, err := r.attack(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		result.Kind, result.Attack, result.As = a.kind, a.name, a.as
		report.Results = append(report.Results, result)
		report.Counts[result.Outcome]++
	}
	slices.SortStableFunc(report.Results, func(a, b Result) int { return a.Kind - b.Kind })
	return report, nil
}

func newRunner(o Options) (*runner, error) {
	admin, err := newClient(o.Admin)
	if err != nil {
		return nil, err
	}
	r := &runner{
		world: &world{admin: admin, live: o.Live, allReads: o.AllReads, seed: namePrefix + apirand.String(5),
			bucket: newUID()},
		watchEnds: cmp.Or(o.watchEnds, defaultWatchEnds), config: o.Admin, attackers: map[As]*client{},
	}
	for _, as := range []As{Gardenlet, Extension} {
		config := rest.CopyConfig(o.Admin)
		config.Impersonate.UserName, config.Impersonate.Groups = r.identity(as)
		if r.attackers[as], err = newClient(config); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// attack tries an attack, unless its preconditions are not met. It returns an error only if there was no response.
func (r *runner) attack(ctx context.Context, a attack) (Result, error) {
	for _, n := range a.needs {
		if !n.met(r.world) {
			return Result{Outcome: Skipped, Answer: n.without}, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, attackTimeout)
	defer cancel()
	if a.try != nil {
		return a.try(ctx, r)
	}
	request := a.request(r.world)
	if request == nil {
		return Result{}, errors.New("making the request failed")
	}
	sent := request.dryRun()
	got, err := r.attackers[a.as].do(ctx, sent)
	if err != nil {
		return Result{}, err
	}
	result := Result{Request: sent.String(), Code: got.code, Answer: got.message}
	switch {
	case a.control && got.ok():
		result.Outcome = Allowed
	case got.ok():
		result.Outcome = Open
	case got.code == http.StatusForbidden && !a.control:
		result.Outcome, result.Unexpected = Refused, !strings.Contains(got.message, a.says)
	default:
		result.Outcome = Undecided
	}
	return result, nil
}

// pair returns the same request for different names.
type pair = func(name string) *request

// tells compares the responses to an attacker for an existing name and for one that does not exist: both must be
// refused, with the same message except for the name.
func tells(as As, names func(*world) (there, absent string, of pair)) func(context.Context, *runner) (Result, error) {
	return func(ctx context.Context, r *runner) (Result, error) {
		there, absent, of := names(r.world)
		var observed [2]answer
		for i, name := range []string{there, absent} {
			var err error
			if observed[i], err = r.attackers[as].do(ctx, of(name).dryRun()); err != nil {
				return Result{}, err
			}
			if observed[i].ok() {
				observed[i].message = reviewed(observed[i].body)
			}
		}
		request := of(there).dryRun()
		result := Result{Request: request.String(), Code: observed[0].code, Answer: observed[0].message, Outcome: Refused}
		same := strings.ReplaceAll(observed[0].message, there, "NAME") == strings.ReplaceAll(observed[1].message, absent, "NAME")
		switch allowed := observed[0].ok() && observed[0].message == ""; {
		case observed[0].code != observed[1].code || !same || allowed:
			result.Outcome = Open
			result.Answer += fmt.Sprintf("; of one that does not exist: %d %s", observed[1].code, observed[1].message)
		case !observed[0].ok() && observed[0].code != http.StatusForbidden:
			result.Outcome = Undecided
		}
		return result, nil
	}
}

// reviewed returns the reason of an access review that is not allowed; empty for other objects.
func reviewed(body []byte) string {
	var review authorizationv1.SelfSubjectAccessReview
	if json.Unmarshal(body, &review) != nil || review.Kind != "SelfSubjectAccessReview" || review.Status.Allowed {
		return ""
	}
	return strings.TrimSpace("not allowed " + review.Status.Reason)
}

func allowed(ctx context.Context, c *client, r *request) bool {
	var review authorizationv1.SelfSubjectAccessReview
	return c.must(ctx, r, &review) == nil && review.Status.Allowed
}

// keepWatch watches a ConfigMap to which the throwaway Seed refers, and removes the reference.
func keepWatch(ctx context.Context, r *runner) (Result, error) {
	watch := get(named(inGarden+"/configmaps", r.seed) + "&watch=true&timeoutSeconds=15")
	result := Result{Request: watch.String(), Outcome: Undecided}
	response, err := r.attackers[Gardenlet].open(ctx, *watch)
	if err != nil {
		return result, err
	}
	defer response.Body.Close()
	if result.Code = response.StatusCode; result.Code != http.StatusOK {
		result.Answer = "the watch does not begin while there is a path"
		return result, nil
	}
	if err := r.admin.must(ctx, patch(r.seedPath(), object{"spec": object{"resources": nil}}), nil); err != nil {
		return result, err
	}
	begin := time.Now()
	ended := time.AfterFunc(r.watchEnds, func() { _ = response.Body.Close() })
	_, _ = io.Copy(io.Discard, response.Body)
	if !ended.Stop() {
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		result.Outcome, result.Answer = Open, fmt.Sprintf("the watch is still open %s after its path has gone", r.watchEnds)
		return result, nil
	}
	took := time.Since(begin).Round(10 * time.Millisecond)
	result.Outcome, result.Answer = Refused, fmt.Sprintf("the watch ended %s after its path had gone", took)
	return result, ctx.Err()
}

// outliveSeed requests a certificate as a gardenlet does, and uses it after the Seed has been deleted.
func outliveSeed(ctx context.Context, r *runner) (Result, error) {
	shoots := shootsOf(r.seed)
	result := Result{Request: shoots.String(), Outcome: Undecided}
	certified, why, err := r.certify(ctx)
	if err != nil || certified == nil {
		result.Answer = why
		return result, err
	}
	before, err := certified.do(ctx, *shoots)
	if err != nil {
		return result, err
	}
	if !before.ok() {
		result.Code, result.Answer = before.code, "with a new certificate, while there is a Seed: "+before.message
		return result, nil
	}
	if err := r.removeAll(ctx, core+"/namespaces/garden/backupentries"); err != nil {
		return result, err
	}
	if err := errors.Join(r.removeAll(ctx, core+"/backupbuckets"), r.removeAll(ctx, core+"/seeds")); err != nil {
		return result, err
	}
	after, err := certified.do(ctx, *shoots)
	if err != nil {
		return result, err
	}
	result.Code, result.Answer = after.code, after.message
	switch {
	case after.code == http.StatusUnauthorized || after.code == http.StatusForbidden:
		result.Outcome = Refused
	case after.ok():
		result.Outcome = Open
	}
	return result, nil
}

// certify requests the client certificate of the throwaway seed's gardenlet. It returns no client, and the reason, if
// the garden does not sign it in time.
func (r *runner) certify(ctx context.Context) (c *client, why string, err error) {
	o, key, err := csrObject(r.seed, r.seed)
	if err != nil {
		return nil, "", err
	}
	asked, err := r.attackers[Gardenlet].do(ctx, *post(csrs, labelled(o)))
	if err != nil {
		return nil, "", err
	}
	if !asked.ok() {
		return nil, "the garden refuses its request for a certificate: " + asked.message, nil
	}
	approved := object{"conditions": []any{object{"type": "Approved", "status": "True", "reason": "AccessCheck"}}}
	if err := r.admin.must(ctx, patch(csrs+"/"+r.seed+"/approval", object{"status": approved}), nil); err != nil {
		return nil, "", err
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, attackTimeout/2, true, func(ctx context.Context) (bool, error) {
		err := r.admin.must(ctx, get(csrs+"/"+r.seed), csr)
		return len(csr.Status.Certificate) > 0, err
	})
	switch {
	case ctx.Err() == nil && wait.Interrupted(err):
		return nil, "the garden does not sign its request for a certificate", nil
	case err != nil:
		return nil, "", err
	}
	config := rest.AnonymousClientConfig(r.config)
	config.CertData = bytes.TrimSpace(csr.Status.Certificate)
	if config.KeyData, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, "", err
	}
	c, err = newClient(config)
	return c, "", err
}

func newUID() string { return string(uuid.NewUUID()) }
