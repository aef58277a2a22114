// Package accesscheck tries attacks on scoped access: requests of a gardenlet, and of an extension on its seed, that
// want what another seed has, and that a garden has to refuse. The attacks are the table in attacks.go; world.go
// makes what they need and removes it, run.go tries them one after another.
//
// Every write of an attacker is a dry run, so that a hole does no harm. Attackers are impersonated: authorizers and
// admission are the same as for a certificate or a token, and nothing of an identity is left behind. The package may
// import the other packages of authz.
package accesscheck
