// Package webhooks answers the webhooks of the gardener-resource-managers, of a seed and of its shoots, that Gardener's gardenlet has
// deployed and that are no processes. They allow everything, because most of what they add to Pods means nothing here, but for the
// deletion of protected resources, which needs a confirmation as in Gardener. Pods get the tokens of their ServiceAccounts.
//
// Only the API servers reach it, over connections in memory. It starts with the first one.
package webhooks

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
)

const (
	// Service is the Service of gardener-resource-manager, and the name of its Deployment.
	Service = "gardener-resource-manager"

	// maxBody is the size of the largest request, which has an old and a new object.
	maxBody = 8 << 20
	timeout = 10 * time.Second
	// certificateAge is the age from which on the certificate is read again.
	certificateAge = 10 * time.Second
	// labelProtected is the label of the CustomResourceDefinitions that are protected.
	labelProtected = "gardener.cloud/deletion-protected"
)

// Server answers the webhooks of the gardener-resource-manager in a namespace of the seed. Config returns the client configuration
// with which it reads its certificate there.
type Server struct {
	Namespace string
	Config    func() (*rest.Config, error)

	mu       sync.Mutex
	listener *memnet.Listener
	server   *http.Server
	client   kubernetes.Interface

	certificate *tls.Certificate
	read        time.Time
}

// Dial connects the API server to the webhooks.
func (s *Server) Dial(context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	return s.listener.Dial(netip.AddrPort{})
}

func (s *Server) start() error {
	config, err := s.Config()
	if err != nil {
		return err
	}
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("making the client that reads the certificate of the webhooks: %w", err)
	}
	s.listener = memnet.Listen(netip.AddrPort{})
	s.server = &http.Server{Handler: http.HandlerFunc(serve), ReadTimeout: timeout, WriteTimeout: timeout,
		TLSConfig: &tls.Config{GetCertificate: s.getCertificate}}
	go func() { _ = s.server.ServeTLS(s.listener, "", "") }() // it ends with Close
	return nil
}

// Close ends the server.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		_ = s.server.Close() // the connections are in memory
	}
}

// getCertificate returns the certificate that the gardenlet has made for the Deployment.
func (s *Server) getCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.certificate != nil && time.Since(s.read) < certificateAge {
		return s.certificate, nil
	}
	ctx, cancel := context.WithTimeout(hello.Context(), timeout)
	defer cancel()
	deployment, err := s.client.AppsV1().Deployments(s.Namespace).Get(ctx, Service, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		secret, err := s.client.CoreV1().Secrets(s.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if certificate, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]); err == nil {
			s.certificate, s.read = &certificate, time.Now()
			return s.certificate, nil
		}
	}
	return nil, errors.New("the Deployment of gardener-resource-manager has no Secret with a certificate")
}

func serve(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(review)
	if err != nil || review.Request == nil {
		http.Error(w, "no AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	switch r.URL.Path {
	case "/webhooks/mount-projected-service-account-token":
		if review.Response.Patch = mountToken(review.Request.Object.Raw); review.Response.Patch != nil {
			review.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
		}
	case "/webhooks/validate-crd-deletion":
		if err := checkDeletion(review.Request); err != nil {
			review.Response.Allowed = false
			review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Message: err.Error()}
		}
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports that there is no answer
}

// checkDeletion returns an error if a protected object is to be deleted without a confirmation.
func checkDeletion(request *admissionv1.AdmissionRequest) error {
	// The webhook gets Bastions as well, which Gardener does not protect.
	if request.Operation != admissionv1.Delete || request.Resource.Resource == "bastions" {
		return nil
	}
	obj := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(request.OldObject.Raw, obj); err != nil {
		return fmt.Errorf("reading the object that is to be deleted: %w", err)
	}
	if request.Resource.Resource == "customresourcedefinitions" && obj.Labels[labelProtected] != "true" {
		return nil
	}
	if confirmed, _ := strconv.ParseBool(obj.Annotations[constants.ConfirmationDeletion]); confirmed {
		return nil
	}
	return fmt.Errorf("must have a %q annotation to delete", constants.ConfirmationDeletion)
}
