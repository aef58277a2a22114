package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// answerSize is how large the answer to a request for a kubeconfig is, in bytes.
const answerSize = 4552

// measurePlain measures a server of Go's net/http that asks nobody who may do what: at first it answers as many bytes as a
// kubeconfig has, then it makes a key and a client certificate for each answer as well. It is in the client's process.
func measurePlain(f flags) error {
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := func() *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "user"}, NotAfter: time.Now().Add(time.Hour)}
	}
	parent := template()
	makes := func() error {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		_, err = x509.CreateCertificate(rand.Reader, template(), parent, key.Public(), authority)
		return err
	}
	answer := bytes.Repeat([]byte("x"), answerSize)
	for _, kind := range []struct {
		name string
		do   func() error
	}{{"net/http: answers of the same size", func() error { return nil }}, {"net/http: a key and a certificate for each", makes}} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			if err == nil {
				err = kind.do()
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(answer) // who is gone gets nothing
		}))
		s.EnableHTTP2 = true
		s.Config.ErrorLog = log.New(os.Stderr, "", 0)
		s.StartTLS()
		if err := measurePlainServer(s, kind.name, f); err != nil {
			s.Close()
			return err
		}
		s.Close()
	}
	return nil
}

func measurePlainServer(s *httptest.Server, name string, f flags) error {
	config := &rest.Config{Host: s.URL}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	conns, err := dialAll(config, f.connections)
	defer closeAll(conns)
	if err != nil {
		return err
	}
	_, err = server{conns, os.Getpid(), f}.measure(name, "/", kubeconfigRequest, nil)
	return err
}
