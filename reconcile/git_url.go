package reconcile

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// scpLike is user@host:path, as git writes an ssh address.
var scpLike = regexp.MustCompile(`^(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^:-][^:]*$`)

// endpoint parses the address of a repository. It accepts https, http, ssh and file. It refuses helper
// programs, text that looks like an option, and credentials. The error does not repeat the address, which
// may contain a credential.
func endpoint(address string) (*transport.Endpoint, error) {
	switch {
	case address == "":
		return nil, errors.New("it is empty")
	case strings.ContainsFunc(address, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return nil, errors.New("it holds a space or a control character")
	case strings.HasPrefix(address, "-"):
		return nil, errors.New("it reads like an option")
	case !strings.Contains(address, "://"):
		if !scpLike.MatchString(address) {
			return nil, errors.New("want https://host/path, ssh://user@host/path, user@host:path or file:///path")
		}
		return transport.NewEndpoint(address)
	}

	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}

	if _, given := u.User.Password(); given || u.User != nil && u.Scheme != "ssh" {
		return nil, errors.New(
			"it holds a credential: put that into a team secret, and name the secret in the settings",
		)
	}

	if u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, errors.New("it has a query or a fragment")
	}

	switch u.Scheme {
	case "https", "http", "ssh":
		if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(u.User.Username(), "-") {
			return nil, errors.New("it names no host")
		}
	case "file":
		if u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(u.Path, "/") {
			return nil, errors.New("a file URL is file:// and an absolute path")
		}
	default:
		return nil, fmt.Errorf("scheme %q is not supported: want https, ssh or file", u.Scheme)
	}

	return transport.NewEndpoint(address)
}

// private reports whether nobody can read the traffic to the endpoint.
func private(ep *transport.Endpoint) bool {
	if ep.Protocol != "http" {
		return true
	}
	ip := net.ParseIP(strings.Trim(ep.Host, "[]"))
	return ep.Host == "localhost" || ip != nil && ip.IsLoopback()
}
