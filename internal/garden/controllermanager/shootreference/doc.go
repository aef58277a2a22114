// Package shootreference protects the objects to which Shoots refer: a Secret, a ConfigMap or a WorkloadIdentity that a
// Shoot names cannot be deleted as long as the Shoot exists. The controller adds a finalizer to the object and to the
// Shoot.
//
// It reads only the metadata of these objects, from the API server. In the namespace garden, it never releases an
// object to which Seeds or ControllerDeployments refer, because these protect objects with the same finalizer. It may
// import API types and the finalizers and the kit beside it.
package shootreference
