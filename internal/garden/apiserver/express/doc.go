// Package express is how requests for kubeconfigs of Shoots go through the garden's API server when there are many at once:
// through a gate that lets few in at a time, and then by a way of their own that is shorter than that of all other requests.
//
// The short way leads through the same authentication, authorization, admission and storage as the other one, and ends only
// in success: a request of which any of them says anything else goes the other way, where it is refused. It is open only to
// what is plain. Requests with any header that is not known here, impersonation among them, go the other way; so do all if
// there is an audit log. What an authorizer decides is shared by requests that ask the same, if they had come before it was asked;
// admission plugins are asked for each request, without the metrics of each plugin.
package express
