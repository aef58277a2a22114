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
	// DefaultRange is the range of public addresses if Addresses.Range is zero.
	DefaultRange = netip.MustParsePrefix("127.64.0.0/10")
	// ports are the ports to try on an address of a bastion's own, the preferred one first.
	ports = []uint16{22, 2222}
	// loopback is the address that all bastions share on a host without other loopback addresses.
	loopback = netip.MustParseAddr("127.0.0.1")
)

const (
	// The range of ports on the shared address. It does not overlap the ephemeral ports of operating systems.
	firstPort, countPorts = 20000, 10000
	// maxTries is how many addresses New tries before it returns an error.
	maxTries = 64
)

// Addresses assigns public addresses. It does not remember which ones: the caller does.
type Addresses struct {
	// Range is the part of 127.0.0.0/8 that addresses are taken from; DefaultRange if it is zero.
	Range netip.Prefix
	// Listen opens the listeners, for tests; net.ListenConfig does if it is nil.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// New finds a free address and listens there. taken reports whether an address is assigned, whether or not it has a
// listener.
func (a Addresses) New(ctx context.Context, taken func(netip.AddrPort) bool) (net.Listener, netip.AddrPort, error) {
	own, err := a.own()
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("finding a public address: %w", err)
	}
	shared := false
	for range maxTries {
		candidates := []netip.AddrPort{netip.AddrPortFrom(loopback, uint16(firstPort+rand.IntN(countPorts)))}
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

// Open listens on an address that was assigned before.
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

// IsOwn reports whether an address is not shared with other bastions.
func (a Addresses) IsOwn(address netip.AddrPort) bool { return address.Addr() != loopback }

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

// ownCandidates returns a random address of the range with each port. It is never the first or the last one of the
// range.
func ownCandidates(own netip.Prefix) (candidates []netip.AddrPort) {
	bytes := own.Addr().As4()
	size := uint32(1) << (32 - own.Bits())
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(bytes[:])+1+rand.Uint32N(size-2))
	for _, port := range ports {
		candidates = append(candidates, netip.AddrPortFrom(netip.AddrFrom4(bytes), port))
	}
	return candidates
}
