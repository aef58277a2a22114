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
// the least that bastions could cost. They serve until the program ends.
type plainServers struct {
	key           ssh.Signer
	config        *ssh.ServerConfig
	bastion, node net.Listener
	mu            sync.Mutex
	open          []net.Conn
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
	go p.accept(p.bastion, forward)
	go p.accept(p.node, session)
	return p, nil
}

func (p *plainServers) route() route {
	return route{bastion: p.bastion.Addr().String(), node: p.node.Addr().String(), bastionKey: p.key, nodeKey: p.key}
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

func (p *plainServers) accept(l net.Listener, serve func(ssh.NewChannel)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.open = append(p.open, conn)
		p.mu.Unlock()
		go func() {
			defer conn.Close()
			_, channels, requests, err := ssh.NewServerConn(conn, p.config)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			for channel := range channels {
				go serve(channel)
			}
		}()
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
	go func() {
		_, _ = io.Copy(target, client)
		_ = target.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(client, target)
}

// session serves a shell, which only prompts, or a command that takes or gives bytes.
func session(channel ssh.NewChannel) {
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
			go execute(client, request.Payload)
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
