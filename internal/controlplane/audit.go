package controlplane

import (
	"path/filepath"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// auditPolicy has every request logged once it was answered, and a watch when it begins: metadata only, for secrets and
// tokens are in what is sent and returned.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// auditArgs are the flags that have the API server write its audit log, if there shall be one.
func (c *Config) auditArgs() ([]string, error) {
	if c.AuditLog == "" {
		return nil, nil
	}
	policy := filepath.Join(c.PKIDir, "audit-policy.yaml")
	if err := fsutil.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	return []string{"--audit-log-path=" + c.AuditLog, "--audit-policy-file=" + policy, "--audit-log-mode=blocking"}, nil
}
