// Package shootreference keeps what Shoots refer to: a Secret, a ConfigMap or a WorkloadIdentity that a Shoot names cannot
// go as long as that Shoot is there, by a finalizer on it and one on the Shoot.
//
// It reads the metadata of such things only, from the garden itself. In the namespace garden, where Seeds and
// ControllerDeployments keep things by the same finalizer, what they refer to is never released here. It may import API
// types and the finalizers and the kit beside it.
package shootreference
