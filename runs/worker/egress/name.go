package egress

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"millwright/bounds/address"
)

// hostName matches a name of the DNS with at least two labels, in small letters.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

const maxName = 253

// CheckName reports what is wrong with the name of a host that clients may reach.
func CheckName(name string) error {
	host, port, withPort := strings.Cut(name, ":")
	switch {
	case strings.Contains(name, "://") || strings.Contains(name, "/"):
		return fmt.Errorf("%q is a URL: want a host name like api.example.com", name)
	case isAddress(name):
		return fmt.Errorf("%q is an IP address: want a host name like api.example.com", name)
	case withPort && hostName.MatchString(strings.ToLower(host)):
		return fmt.Errorf(
			"%q has the port %s: want the name alone, since only port 443 is reached", name, port)
	case strings.Contains(name, "*"):
		return fmt.Errorf("%q is a pattern: want each host by its own name", name)
	case strings.ToLower(name) != name && hostName.MatchString(strings.ToLower(name)):
		return fmt.Errorf("%q has capitals: want %s", name, strings.ToLower(name))
	case len(name) > maxName || !hostName.MatchString(name):
		return fmt.Errorf("%q is no host name: want one like api.example.com", name)
	}
	return nil
}

// isAddress reports whether text is an IP address, in one of the forms that programs read.
func isAddress(text string) bool {
	text = strings.Trim(text, "[]")
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	return number.MatchString(text)
}

// number matches the forms of IPv4 addresses that inet_aton reads, such as 127.1 and 0x7f000001.
var number = regexp.MustCompile(`(?i)^(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]+|[0-9]+)){0,3}$`)

// hostOf returns the host of an address of a client, if it is the name of a host.
func hostOf(address string) string {
	host, _, _ := strings.Cut(strings.ToLower(address), ":")
	if CheckName(host) != nil {
		return ""
	}
	return host
}

// shown returns a name that a client gave, for people.
func shown(name string) string {
	if CheckName(name) != nil {
		return "which is no host name"
	}
	return name
}

// public reports whether the address of a dial is a public one.
func public(dialled string) bool {
	at, err := netip.ParseAddrPort(dialled)
	return err == nil && address.Public(at.Addr())
}
