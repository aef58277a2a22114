package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// plainServers are two SSH servers of golang.org/x/crypto without additions, the second one reached through the first one:
// the least that bastions could cost.
type plainServers struct {
	key      ssh.Signer
	config   *ssh.ServerConfig
	bastion  net.Listener
	node     net.Listener
	mu       sync.Mutex
	open     []net.Conn
	stopping bool
	group    sync.WaitGroup
}

func startPlainServers() (p *plainServers, err error) {
	p = &plainServers{}
	if p.key, err = newKey(); err != nil {
		return nil, err
	}
	allowed := p.key.PublicKey().Marshal()
	p.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), allowed) {
			return nil, fmt.Errorf("another key")
		}
		return nil, nil
	}}
	p.config.AddHostKey(p.key)
	if p.bastion, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if p.node, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	p.group.Go(func() { p.accept(p.bastion, forward) })
	p.group.Go(func() { p.accept(p.node, p.session) })
	return p, nil
}

func (p *plainServers) route() route {
	return route{bastion: p.bastion.Addr().String(), node: p.node.Addr().String(), bastionKey: p.key, nodeKey: p.key}
}

func (p *plainServers) stop() {
	_ = p.bastion.Close()
	_ = p.node.Close()
	p.disconnect()
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	p.disconnect()
	p.group.Wait()
}

// disconnect closes all connections.
func (p *plainServers) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
}

// track records a connection for disconnect.
func (p *plainServers) track(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		_ = conn.Close()
	}
	p.open = append(p.open, conn)
}

func (p *plainServers) accept(l net.Listener, serve func(ssh.NewChannel)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		p.track(conn)
		p.group.Go(func() {
			defer conn.Close()
			_, channels, requests, err := ssh.NewServerConn(conn, p.config)
			if err != nil {
				return
			}
			p.group.Go(func() { ssh.DiscardRequests(requests) })
			for channel := range channels {
				p.group.Go(func() { serve(channel) })
			}
		})
	}
}

// forward forwards a channel to the address that the client asks for.
func forward(channel ssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if err := ssh.Unmarshal(channel.ExtraData(), &to); err != nil {
		_ = channel.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	target, err := net.Dial("tcp", net.JoinHostPort(to.Host, fmt.Sprint(to.Port)))
	if err != nil {
		_ = channel.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer target.Close()
	client, requests, err := channel.Accept()
	if err != nil {
		return
	}
	defer client.Close()
	go ssh.DiscardRequests(requests)
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(target, client)
		_ = target.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(client, target)
	_ = client.CloseWrite()
	up.Wait()
}

// session serves a shell, which only prompts, or a command that takes or gives bytes.
func (p *plainServers) session(channel ssh.NewChannel) {
	client, requests, err := channel.Accept()
	if err != nil {
		return
	}
	defer client.Close()
	for request := range requests {
		_ = request.Reply(true, nil)
		switch request.Type {
		case "shell":
			_, _ = io.WriteString(client, "$ ")
		case "exec":
			p.group.Go(func() { execute(client, request.Payload) })
		}
	}
}

func execute(client ssh.Channel, payload []byte) {
	var exec struct{ Command string }
	_ = ssh.Unmarshal(payload, &exec)
	var size int64
	if _, err := fmt.Sscanf(exec.Command, giveAll, &size); err == nil {
		_, _ = io.Copy(client, io.LimitReader(zeros{}, size))
	} else {
		_, _ = io.Copy(io.Discard, client)
	}
	_, _ = client.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{}))
	_ = client.Close()
}
