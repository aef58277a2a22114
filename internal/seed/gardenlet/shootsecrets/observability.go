package shootsecrets

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// ObservabilityUsers is the name of the Secret with what a shoot's users log in to its observability components with; Gardener's.
const ObservabilityUsers = "observability-ingress-users"

// Keys of that Secret's data.
const (
	KeyUsername = "username"
	KeyPassword = "password"
	// KeyAuth is what a server checks the other two by: the name and a hash of the password.
	KeyAuth = "auth"
)

// observabilityUser is the name of the one user; Gardener's.
const observabilityUser = "admin"

// Observability makes sure of the password for the observability components. The one before is good no more as soon as there
// is another one.
func (m *Manager) Observability(ctx context.Context, rotation Rotation) (map[string][]byte, error) {
	rotation.Completing = true
	pair, err := m.ensure(ctx, ObservabilityUsers, rotation, func(time.Time) (map[string][]byte, error) { return newPassword() })
	return pair.Current, err
}

// RemoveObservability is for a shoot without observability components.
func (m *Manager) RemoveObservability(ctx context.Context) error {
	return m.removeBoth(ctx, ObservabilityUsers)
}

func newPassword() (map[string][]byte, error) {
	password := []byte(rand.Text() + rand.Text()[:6]) // 32 characters, as Gardener's
	// A random password of that length cannot be guessed, so that a low cost is enough.
	hash, err := bcrypt.GenerateFromPassword(password, bcrypt.MinCost)
	if err != nil {
		return nil, fmt.Errorf("hashing the password for the observability components: %w", err)
	}
	return map[string][]byte{
		KeyUsername: []byte(observabilityUser), KeyPassword: password, KeyAuth: append([]byte(observabilityUser+":"), hash...),
	}, nil
}
