package public

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
)

var (
	// DefaultRange is where addresses are from.
	DefaultRange = netip.MustParsePrefix("127.64.0.0/10")
	// ports are those that are tried on an address of one's own, the best one first.
	ports = []uint16{22, 2222}
	// loopback is the address that all bastions share where there are no others.
	loopback = netip.MustParseAddr("127.0.0.1")
)

const (
	// The ports on the shared address: none that systems give to those who connect.
	firstPort, countPorts = 20000, 10000
	// maxTries is how many addresses are tried before it is an error.
	maxTries = 64
)

// Listen is how a listener is made: net.ListenConfig's, but in tests.
type Listen func(ctx context.Context, network, address string) (net.Listener, error)

// Addresses gives away public addresses. It remembers none: who has one keeps it.
type Addresses struct {
	// Range is where addresses are from, a part of 127.0.0.0/8; DefaultRange if it is zero.
	Range netip.Prefix
	// Listen makes the listeners; those of the host if it is nil.
	Listen Listen
}

// New finds a free address and listens there. taken says which ones are assigned, whether or not there is a listener.
func (a Addresses) New(ctx context.Context, taken func(netip.AddrPort) bool) (net.Listener, netip.AddrPort, error) {
	own, err := a.own()
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("finding a public address: %w", err)
	}
	shared := false
	for range maxTries {
		candidates := sharedCandidates()
		if !shared {
			candidates = ownCandidates(own)
		}
		for _, candidate := range candidates {
			if taken(candidate) {
				break // another address
			}
			var l net.Listener
			if l, err = a.Open(ctx, candidate); err == nil {
				return l, candidate, nil
			}
			if errors.Is(err, syscall.EADDRNOTAVAIL) {
				shared = true
				break
			}
			if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EPERM) {
				return nil, netip.AddrPort{}, fmt.Errorf("finding a public address: %w", err)
			}
		}
	}
	if err == nil {
		err = errors.New("all that were tried are given away")
	}
	return nil, netip.AddrPort{}, fmt.Errorf("finding a public address: none of %d can be had: %w", maxTries, err)
}

// Open listens on an address that was given away before.
func (a Addresses) Open(ctx context.Context, address netip.AddrPort) (net.Listener, error) {
	if !address.Addr().IsLoopback() || address.Port() == 0 {
		return nil, fmt.Errorf("%s is no public address: they are of the loopback, with a port", address)
	}
	listen := a.Listen
	if listen == nil {
		listen = (&net.ListenConfig{}).Listen
	}
	l, err := listen(ctx, "tcp4", address.String())
	if err != nil {
		return nil, fmt.Errorf("listening on the public address %s: %w", address, err)
	}
	return l, nil
}

// IsOwn says whether an address is one that its owner does not share with others.
func (a Addresses) IsOwn(address netip.AddrPort) bool { return address.Addr() != loopback }

// own is the range of addresses.
func (a Addresses) own() (netip.Prefix, error) {
	own := a.Range
	if !own.IsValid() {
		own = DefaultRange
	}
	if !own.Addr().Is4() || !own.Addr().IsLoopback() || own.Bits() < 8 || own.Bits() > 30 {
		return own, fmt.Errorf("the range %s is none of the loopback, a part of 127.0.0.0/8 from /8 to /30", own)
	}
	return own.Masked(), nil
}

// ownCandidates are the ports of an address by chance, which is not the first or the last one of its range.
func ownCandidates(own netip.Prefix) (candidates []netip.AddrPort) {
	bytes := own.Addr().As4()
	size := uint32(1) << (32 - own.Bits())
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(bytes[:])+1+rand.Uint32N(size-2))
	for _, port := range ports {
		candidates = append(candidates, netip.AddrPortFrom(netip.AddrFrom4(bytes), port))
	}
	return candidates
}

func sharedCandidates() []netip.AddrPort {
	return []netip.AddrPort{netip.AddrPortFrom(loopback, uint16(firstPort+rand.IntN(countPorts)))}
}
