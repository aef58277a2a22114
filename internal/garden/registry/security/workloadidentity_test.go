package security

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func TestSubject(t *testing.T) {
	def := workloadIdentities()
	w := &gardensecurity.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "garden-dev", UID: "u"}}
	def.PrepareForCreate(t.Context(), w)
	if w.Status.Sub != "gardener.cloud:workloadidentity:garden-dev:w:u" {
		t.Errorf("subject %s", w.Status.Sub)
	}
	w.Status.Sub = "own" // validation refuses it, so that it is not ignored silently
	def.PrepareForCreate(t.Context(), w)
	if w.Status.Sub != "own" {
		t.Errorf("subject %s", w.Status.Sub)
	}
}

// TestNames checks that objects without a name get one, and that a WorkloadIdentity also gets a UID.
func TestNames(t *testing.T) {
	w := &gardensecurity.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{GenerateName: "w-"}}
	workloadIdentities().PrepareForCreate(t.Context(), w)
	b := &gardensecurity.CredentialsBinding{}
	credentialsBindings().PrepareForCreate(t.Context(), b)
	if !strings.HasPrefix(w.Name, "w-") || w.UID == "" || !strings.HasSuffix(w.Status.Sub, ":"+w.Name+":"+string(w.UID)) || b.Name == "" {
		t.Errorf("identity %+v, binding %+v", w, b)
	}
}

type identities map[string]*gardensecurity.WorkloadIdentity

func (i identities) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if w, ok := i[name]; ok {
		return w, nil
	}
	return nil, apierrors.NewNotFound(gardensecurity.Resource("workloadidentities"), name)
}

func newIssuer(t *testing.T) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Issuer{URL: "https://garden/issuer", Key: key, Clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
}

func as(ctx context.Context, groups ...string) context.Context {
	return genericapirequest.WithUser(genericapirequest.WithNamespace(ctx, "garden-dev"), &user.DefaultInfo{Name: "alice", Groups: groups})
}

func TestTokenRequests(t *testing.T) {
	rest := newTokenREST(identities{"w": {}}, plugintest.Reader{}, newIssuer(t))
	for _, test := range []struct {
		identity, name, namespace string
		seconds                   int64
		code                      int32
	}{
		{"w", "", "", 600, 0},
		{"w", "w", "garden-dev", 600, 0},
		{"w", "", "", 1, http.StatusUnprocessableEntity},
		{"w", "x", "", 600, http.StatusUnprocessableEntity},
		{"w", "", "garden", 600, http.StatusUnprocessableEntity},
		{"x", "", "", 1, http.StatusNotFound},
	} {
		request := &gardensecurity.TokenRequest{ObjectMeta: metav1.ObjectMeta{Name: test.name, Namespace: test.namespace},
			Spec: gardensecurity.TokenRequestSpec{ExpirationSeconds: test.seconds}}
		_, err := rest.Create(as(t.Context()), test.identity, request, nil, &metav1.CreateOptions{})
		if test.code == 0 && err == nil {
			continue
		}
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != test.code {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// check verifies a token with the keys that discovery finds, and returns its claims.
func check(t *testing.T, issuer *Issuer, token string) (c claims) {
	t.Helper()
	documents, err := issuer.Documents()
	if err != nil {
		t.Fatal(err)
	}
	keys := struct{ Keys []struct{ Kid, X, Y string } }{}
	header := struct{ Alg, Kid string }{}
	parts := strings.Split(token, ".")
	if err := errors.Join(json.Unmarshal(documents[KeysPath], &keys), json.Unmarshal(decode(t, parts[0]), &header),
		json.Unmarshal(decode(t, parts[1]), &c)); err != nil {
		t.Fatal(err)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(
		elliptic.P256(), slices.Concat([]byte{4}, decode(t, keys.Keys[0].X), decode(t, keys.Keys[0].Y)))
	if err != nil {
		t.Fatal(err)
	}
	digest, signature := sha256.Sum256([]byte(parts[0]+"."+parts[1])), decode(t, parts[2])
	if header.Kid != keys.Keys[0].Kid || header.Alg != "ES256" ||
		!ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Errorf("header %+v, keys %+v", header, keys)
	}
	if !strings.Contains(string(documents[DiscoveryPath]), issuer.URL+KeysPath) {
		t.Errorf("discovery %s", documents[DiscoveryPath])
	}
	return c
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestToken checks the claims of tokens. Only tokens of gardenlets name the object for which they are used.
func TestToken(t *testing.T) {
	issuer := newIssuer(t)
	shoot := &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x", UID: "shoot"},
		Spec: gardencore.ShootSpec{SeedName: ptr.To("s")}}
	shoot.Status.TechnicalID = "shoot--dev--x"
	entry := &gardencore.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "shoot--dev--x--shoot",
		UID: "entry", OwnerReferences: []metav1.OwnerReference{{Kind: "Shoot", Name: "x"}}}}
	entry.Spec.BucketName = "b"
	left := entry.DeepCopy()
	left.Name = "shoot--dev--x--gone"
	project := &gardencore.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev", UID: "project"},
		Spec: gardencore.ProjectSpec{Namespace: ptr.To("garden-dev")}}
	reader := plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("shoots"): {shoot}, gardencore.Resource("backupentries"): {entry, left}, gardencore.Resource("projects"): {project},
		gardencore.Resource("seeds"):         {&gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "seed"}}},
		gardencore.Resource("backupbuckets"): {&gardencore.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "bucket"}}},
	}}
	identity := &gardensecurity.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "w", UID: "identity"},
		Spec: gardensecurity.WorkloadIdentitySpec{Audiences: []string{"a"}}}
	identity.Status.Sub = "subject"
	rest := newTokenREST(identities{"w": identity}, reader, issuer)
	ref := func(kind, name, uid string) *gardensecurity.ContextObject {
		return &gardensecurity.ContextObject{APIVersion: "core.gardener.cloud/v1beta1", Kind: kind, Name: name,
			Namespace: ptr.To("garden-dev"), UID: types.UID(uid)}
	}
	for name, test := range map[string]struct {
		group, want string
		seconds     int64
		object      *gardensecurity.ContextObject
		life        time.Duration
		fails       bool
	}{
		"of a person":           {"people", "", 600, nil, time.Hour, false},
		"of a person, for long": {"people", "", 1 << 31, ref("Shoot", "x", "shoot"), 48 * time.Hour, false},
		"for a Shoot":           {constants.SeedsGroup, "shoot project seed", 7200, ref("Shoot", "x", "shoot"), 2 * time.Hour, false},
		"for a Seed":            {constants.SeedsGroup, "seed", 7200, ref("Seed", "s", "seed"), 2 * time.Hour, false},
		"for a bucket":          {constants.SeedsGroup, "bucket", 7200, ref("BackupBucket", "b", "bucket"), 2 * time.Hour, false},
		"for an entry": {constants.SeedsGroup, "shoot project bucket entry", 7200,
			ref("BackupEntry", entry.Name, "entry"), 2 * time.Hour, false},
		"for an entry left": {constants.SeedsGroup, "bucket entry", 7200, ref("BackupEntry", left.Name, "entry"), 2 * time.Hour, false},
		"for another Shoot": {constants.SeedsGroup, "", 7200, ref("Shoot", "x", "other"), 0, true},
		"for no Shoot":      {constants.SeedsGroup, "", 7200, ref("Shoot", "y", "shoot"), 0, true},
		"for a Project":     {constants.SeedsGroup, "", 7200, ref("Project", "dev", "project"), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			request := &gardensecurity.TokenRequest{
				Spec: gardensecurity.TokenRequestSpec{ExpirationSeconds: test.seconds, ContextObject: test.object}}
			obj, err := rest.Create(as(t.Context(), test.group), "w", request, nil, &metav1.CreateOptions{})
			if err != nil {
				var status apierrors.APIStatus
				if !test.fails || !errors.As(err, &status) {
					t.Error(err)
				}
				return
			}
			answer := obj.(*gardensecurity.TokenRequest)
			c := check(t, issuer, answer.Status.Token)
			var found []string
			for _, o := range []*object{c.Gardener.Shoot, c.Gardener.Project, c.Gardener.Seed, c.Gardener.BackupBucket, c.Gardener.BackupEntry} {
				if o != nil {
					found = append(found, o.UID)
				}
			}
			if got := strings.Join(found, " "); got != test.want || test.fails {
				t.Errorf("about %q", got)
			}
			end := issuer.Clock.Now().Add(test.life)
			if c.Expiry != end.Unix() || !answer.Status.ExpirationTimestamp.Time.Equal(end) || c.Subject != "subject" ||
				c.Issuer != issuer.URL || c.Audience[0] != "a" || c.Gardener.WorkloadIdentity.UID != "identity" {
				t.Errorf("claims %+v, expires %s", c, answer.Status.ExpirationTimestamp)
			}
		})
	}
}
