package api

import (
	"net/http"
	"net/netip"
	"strings"
)

// maxHops is how many entries of X-Forwarded-For are read, from the right.
const maxHops = 32

// Sender identifies the sender of a request.
type Sender struct {
	// Key is the client's address or, for IPv6, its /64 network.
	Key string
	// Unheeded reports that an untrusted peer sent X-Forwarded-For, which was ignored.
	Unheeded bool
}

// SenderOf returns the sender of a request (docs/contract.md, section 8): the peer of its connection. If
// the peer is a trusted proxy, it is the right-most untrusted hop of X-Forwarded-For.
func SenderOf(r *http.Request, trusted []netip.Prefix) Sender {
	addr, ok := addrOf(r.RemoteAddr)
	if !ok {
		return Sender{Key: "local"} // a socket without an address
	}

	forwarded := r.Header["X-Forwarded-For"]
	if len(forwarded) == 0 {
		return Sender{Key: network(addr)}
	}
	if !contains(trusted, addr) {
		return Sender{Key: network(addr), Unheeded: true}
	}

	hops := 0
	for i := len(forwarded) - 1; i >= 0; i-- {
		for rest, more := forwarded[i], true; more; hops++ {
			var hop string
			if at := strings.LastIndexByte(rest, ','); at >= 0 {
				rest, hop = rest[:at], rest[at+1:]
			} else {
				hop, more = rest, false
			}

			next, ok := addrOf(strings.Trim(hop, " \t"))
			if !ok || hops == maxHops {
				return Sender{Key: network(addr)} // only trusted proxies are believed
			}
			if addr = next; !contains(trusted, addr) {
				return Sender{Key: network(addr)}
			}
		}
	}

	return Sender{Key: network(addr)}
}

// addrOf reads an address with or without a port.
func addrOf(text string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	if len(text) > 2 && text[0] == '[' && text[len(text)-1] == ']' {
		text = text[1 : len(text)-1]
	}
	addr, err := netip.ParseAddr(text)
	return addr.Unmap().WithZone(""), err == nil
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func network(addr netip.Addr) string {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}

// SenderNetwork returns the sender for a peer address (host and port) without any proxy, and whether the
// peer is in a trusted network.
func SenderNetwork(peer string, trusted []netip.Prefix) (sender string, isTrusted bool) {
	addr, ok := addrOf(peer)
	if !ok {
		return "local", true
	}
	return network(addr), contains(trusted, addr)
}
