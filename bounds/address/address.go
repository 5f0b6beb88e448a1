// Package address tells the addresses of the public internet from all others, for connections whose destination
// strangers choose. It is pure.
package address

import "net/netip"

// closed are networks whose addresses are not public, beside those that the standard library knows, or that
// lead to addresses of IPv4.
var closed = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// global is the part of IPv6 that has public addresses.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Public reports whether an address is a public one: neither private, loopback, link-local, shared, reserved nor
// multicast, and no address of IPv6 that leads to one of IPv4, except a mapped one that is public itself.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}

	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !global.Contains(a) {
		return false
	}
	for _, p := range closed {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
