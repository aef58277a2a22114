package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// processArgument is the first argument of the test binary when it runs as the program of an image.
const processArgument = "run-as-program"

// runProgram prints its identity, what it may do, its environment, and a file each time it changes. With a
// certificate, it serves a webhook that refuses everything. It runs until it is asked to end.
func runProgram(args []string) {
	flags := flag.NewFlagSet("program", flag.ExitOnError)
	file := flags.String("file", "", "the file to tell")
	certificates := flags.String("certificates", "", "the folder with the certificate of the webhook")
	port := flags.Int("port", 0, "the port of the webhook")
	exit := flags.Int("exit", -1, "end at once, with this status")
	healthPort := flags.Int("health", 0, "the port of a gRPC server that tells its health")
	link := flags.String("link", "", "make this a link to /etc, and end")
	stubborn := flags.Bool("stubborn", false, "do not end when asked to")
	daemon := flags.Bool("daemon", false, "start itself in a session of its own")
	ask := flags.Bool("ask", false, "tell who it is each time that this changes")
	count := flags.String("count", "", "a file in which starts are counted")
	_ = flags.Parse(args)
	if *exit >= 0 {
		os.Exit(*exit)
	}
	if *link != "" {
		fmt.Println("link", os.Symlink("/etc", *link))
		return
	}
	if *count != "" {
		countStart(*count)
	}
	fmt.Println("arguments", flags.Args())
	for _, variable := range os.Environ() {
		fmt.Println("environment", variable)
	}
	tellIdentity()
	if *daemon {
		startDaemon()
	}
	if *ask {
		go askAgain()
	}
	if *healthPort != 0 {
		go serveHealth(*healthPort)
	}
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
			if !*stubborn {
				return
			}
		case <-ticker.C:
		}
		if data, err := os.ReadFile(*file); err == nil && string(data) != last {
			last = string(data)
			fmt.Println("file", last)
		}
	}
}

func startDaemon() {
	self, err := os.Executable()
	if err != nil {
		fmt.Println("daemon", err)
		return
	}
	cmd := exec.Command(self, processArgument)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	fmt.Println("daemon", cmd.Start())
}

// countStart counts the starts that have the file, and tells the number.
func countStart(file string) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Println("start", err)
	}
	data = append(data, '.')
	fmt.Println("start", len(data), os.WriteFile(file, data, 0o600))
}

// tellIdentity connects to the cluster as programs with client-go do, and prints its identity.
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

// askAgain prints the identity of the process, or the error, each time it changes.
func askAgain() {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		fmt.Println("asked", err)
		return
	}
	client, last := kubernetes.NewForConfigOrDie(config), ""
	for ; ; time.Sleep(100 * time.Millisecond) {
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(
			context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		answer := fmt.Sprint(err)
		if err == nil {
			answer = review.Status.UserInfo.Username
		}
		if answer != last {
			last = answer
			fmt.Println("asked", answer)
		}
	}
}

func serveHealth(port int) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		fmt.Println("health", err)
		return
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	fmt.Println("health", server.Serve(listener))
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
