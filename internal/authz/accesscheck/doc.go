// Package accesscheck tries attacks on scoped access: requests of a gardenlet, and of an extension on its seed, for
// objects of another seed, which a garden has to refuse. The attacks are listed in attacks.go; world.go creates the
// objects that they need and removes them, run.go tries the attacks one after another.
//
// Every write of an attacker is a dry run, so that a security hole does no harm. Attackers are impersonated:
// authorizers and admission are the same as for a certificate or a token, and no credentials are left behind. The
// package may import the other packages of authz.
package accesscheck
