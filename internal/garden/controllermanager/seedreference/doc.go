// Package seedreference protects the objects in the namespace garden to which Seeds refer: a Secret, a ConfigMap or a
// WorkloadIdentity among a Seed's resources cannot be deleted as long as the Seed exists. The controller adds a
// finalizer to the object and to the Seed.
//
// It reads only the metadata of these objects, from the API server. It never releases an object that a Shoot or a
// ControllerDeployment, which are protected with the same finalizer, may refer to by its name. It may import API types
// and the finalizers and the kit beside it.
package seedreference
