package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// processArgument is the first argument of the test binary where it is the program that an image is mapped to.
const processArgument = "run-as-program"

// runProgram tells who it is, what it may, its environment and a file each time it changes. It serves a webhook that refuses
// everything, if it has a certificate, until it is asked to end.
func runProgram(args []string) {
	flags := flag.NewFlagSet("program", flag.ExitOnError)
	file := flags.String("file", "", "the file to tell")
	certificates := flags.String("certificates", "", "the folder with the certificate of the webhook")
	port := flags.Int("port", 0, "the port of the webhook")
	crash := flags.Bool("crash", false, "fail at once")
	_ = flags.Parse(args)
	if *crash {
		os.Exit(7)
	}
	fmt.Println("arguments", flags.Args())
	for _, variable := range os.Environ() {
		fmt.Println("environment", variable)
	}
	tellIdentity()
	if *certificates != "" {
		go serveWebhook(*certificates, *port)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case <-asked:
			fmt.Println("asked to end")
			return
		case <-ticker.C:
		}
		if data, err := os.ReadFile(*file); err == nil && string(data) != last {
			last = string(data)
			fmt.Println("file", last)
		}
	}
}

// tellIdentity finds the cluster as programs made with client-go do.
func tellIdentity() {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		fmt.Println("identity", err)
		return
	}
	ctx, client := context.Background(), kubernetes.NewForConfigOrDie(config)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		fmt.Println("identity", err)
		return
	}
	fmt.Println("identity", review.Status.UserInfo.Username)
	_, err = client.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
	fmt.Println("secrets", err)
}

func serveWebhook(certificates string, port int) {
	server := &http.Server{
		Addr: fmt.Sprintf("127.0.0.1:%d", port), ReadHeaderTimeout: time.Second, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			review := &admissionv1.AdmissionReview{}
			if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
				http.Error(w, "no review", http.StatusBadRequest)
				return
			}
			review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "refused by the program"}}
			_ = json.NewEncoder(w).Encode(review)
		}),
	}
	fmt.Println("webhook", server.ListenAndServeTLS(certificates+"/tls.crt", certificates+"/tls.key"))
}
