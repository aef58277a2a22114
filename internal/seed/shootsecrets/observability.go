package shootsecrets

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// ObservabilityUsers is the name of the Secret with the login for a shoot's observability components, as in Gardener.
const ObservabilityUsers = "observability-ingress-users"

// Keys of that Secret's data.
const (
	KeyUsername = "username"
	KeyPassword = "password"
	// KeyAuth is the entry with which a server checks the login: the user name and a hash of the password.
	KeyAuth = "auth"
)

// observabilityUser is the name of the only user, as in Gardener.
const observabilityUser = "admin"

// Observability ensures the password for the observability components. A rotation invalidates the old password at once.
func (m *Manager) Observability(ctx context.Context, rotation Rotation) (map[string][]byte, error) {
	rotation.Completing = true
	pair, err := m.ensure(ctx, ObservabilityUsers, rotation, func(time.Time) (map[string][]byte, error) { return NewPassword() })
	return pair.Current, err
}

// RemoveObservability removes the password, for a shoot without observability components.
func (m *Manager) RemoveObservability(ctx context.Context) error {
	return m.removeBoth(ctx, ObservabilityUsers)
}

// NewPassword returns the data of a Secret with a login for observability components.
func NewPassword() (map[string][]byte, error) {
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
