package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"
)

const (
	// window is how much a server may send of an answer, and of all answers, before it has to wait. No answer is so large.
	window = 1 << 26
	// answerTimeout bounds the wait for all answers of a connection.
	answerTimeout = 5 * time.Minute
)

// conn is a connection that speaks as little HTTP/2 as it takes to ask many things at once: what the client costs is
// taken from the processors that the server works on.
type conn struct {
	tls    *tls.Conn
	framer *http2.Framer
	host   string
	token  string
	next   uint32 // stream

	fields *hpack.Encoder
	block  bytes.Buffer
}

// call is one request and what came of it.
type call struct {
	status int
	body   []byte
	took   time.Duration
}

// dial opens a connection with the credentials of a configuration.
func dial(config *rest.Config) (*conn, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	tlsConfig := &tls.Config{NextProtos: []string{"h2"}, RootCAs: x509.NewCertPool()}
	tlsConfig.RootCAs.AppendCertsFromPEM(config.CAData)
	if len(config.CertData) > 0 {
		pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
		if err != nil {
			return nil, err
		}
		tlsConfig.Certificates = []tls.Certificate{pair}
	}
	c := &conn{host: target.Host, token: config.BearerToken, next: 1}
	c.fields = hpack.NewEncoder(&c.block)
	c.fields.SetMaxDynamicTableSize(0)
	if c.tls, err = tls.Dial("tcp", target.Host, tlsConfig); err != nil {
		return nil, err
	}
	c.framer = http2.NewFramer(c.tls, c.tls)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.framer.SetReuseFrames()
	if _, err = c.tls.Write([]byte(http2.ClientPreface)); err == nil {
		err = errors.Join(c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}), c.framer.WriteWindowUpdate(0, window))
	}
	return c, err
}

// dialAll opens connections with the same credentials. Those that are open are returned with an error, too.
func dialAll(config *rest.Config, count int) (conns []*conn, err error) {
	for range count {
		c, err := dial(config)
		if err != nil {
			return conns, fmt.Errorf("connecting: %w", err)
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func (c *conn) close() { _ = c.tls.Close() }

// post sends a request as often as there are calls, in one piece, and waits for all answers. The time of each is from the
// moment that they are sent until its last byte is there.
func (c *conn) post(path string, body []byte, calls []call) error {
	var out bytes.Buffer
	framer, first := http2.NewFramer(&out, nil), c.next
	for range calls {
		c.block.Reset()
		for _, f := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: c.host},
			{Name: ":path", Value: path}, {Name: "content-type", Value: "application/json"}, {Name: "accept", Value: "application/json"},
			{Name: "user-agent", Value: "bench"}, {Name: "content-length", Value: strconv.Itoa(len(body))}} {
			_ = c.fields.WriteField(f) // into memory
		}
		if c.token != "" {
			_ = c.fields.WriteField(hpack.HeaderField{Name: "authorization", Value: "Bearer " + c.token})
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: c.block.Bytes(), EndHeaders: true})
		_ = framer.WriteData(c.next, true, body)
		c.next += 2
	}
	begin := time.Now()
	if err := c.tls.SetDeadline(begin.Add(answerTimeout)); err != nil {
		return err
	}
	sent := make(chan error, 1) // the server need not take all before it answers
	go func() {
		_, err := c.tls.Write(out.Bytes())
		sent <- err
	}()
	err := c.read(first, calls, begin)
	if err != nil {
		c.close() // so that the writer ends
	}
	return errors.Join(err, <-sent)
}

// read reads until all calls have been answered.
func (c *conn) read(first uint32, calls []call, begin time.Time) error {
	for left := len(calls); left > 0; {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return fmt.Errorf("reading answers, %d are missing: %w", left, err)
		}
		of := func() *call { return &calls[(frame.Header().StreamID-first)/2] }
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			of().status, _ = strconv.Atoi(f.PseudoValue("status"))
		case *http2.DataFrame:
			of().body = append(of().body, f.Data()...)
		case *http2.RSTStreamFrame:
			return fmt.Errorf("the server gave a call up: %s", f.ErrCode)
		case *http2.GoAwayFrame:
			return fmt.Errorf("the server closes the connection: %s", f.ErrCode)
		case *http2.SettingsFrame:
			if most, ok := f.Value(http2.SettingMaxConcurrentStreams); ok && int(most) < len(calls) {
				return fmt.Errorf("the server takes %d calls at once from a connection, not %d: use more connections", most, len(calls))
			}
		}
		switch frame.Header().Type {
		case http2.FrameHeaders, http2.FrameData:
			if frame.Header().Flags.Has(http2.FlagDataEndStream) {
				of().took = time.Since(begin)
				left--
			}
		}
	}
	return nil
}

// atOnce spreads calls over connections, which all send at the same time.
func atOnce(conns []*conn, path string, body []byte, count int) ([]call, error) {
	calls, errs := make([]call, count), make([]error, len(conns))
	var all sync.WaitGroup
	start := make(chan struct{})
	for i, c := range conns {
		part := calls[count*i/len(conns) : count*(i+1)/len(conns)]
		all.Go(func() {
			<-start
			errs[i] = c.post(path, body, part)
		})
	}
	close(start)
	all.Wait()
	return calls, errors.Join(errs...)
}
