package api_test

import (
	"net/http"
	"net/netip"
	"testing"

	"millwright/api"
)

func TestSenderOf(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		trusted    []netip.Prefix
		want       string
		unheeded   bool
	}{
		{name: "peer", peer: "192.0.2.7:41", want: "192.0.2.7"},
		{name: "IPv6 counts by /64", peer: "[2001:db8:1:2:3:4:5:6]:41", want: "2001:db8:1:2::/64"},
		{name: "IPv4 in IPv6", peer: "[::ffff:192.0.2.7]:41", want: "192.0.2.7"},
		{name: "zone", peer: "[fe80::1%eth0]:41", want: "fe80::/64"},
		{name: "unix socket", peer: "@", want: "local"},
		{name: "untrusted peer is not believed", peer: "192.0.2.7:41", forwarded: []string{"198.51.100.1"}, trusted: trusted, want: "192.0.2.7", unheeded: true},
		{name: "no proxy is trusted by default", peer: "10.0.0.1:41", forwarded: []string{"198.51.100.1"}, want: "10.0.0.1", unheeded: true},
		{name: "trusted peer", peer: "10.0.0.1:41", forwarded: []string{"198.51.100.1"}, trusted: trusted, want: "198.51.100.1"},
		{name: "right-most untrusted hop", peer: "10.0.0.1:41", forwarded: []string{"203.0.113.9, 198.51.100.1, 10.2.2.2"}, trusted: trusted, want: "198.51.100.1"},
		{name: "several lines", peer: "10.0.0.1:41", forwarded: []string{"203.0.113.9", "198.51.100.1", "10.2.2.2,10.3.3.3"}, trusted: trusted, want: "198.51.100.1"},
		{name: "all trusted", peer: "10.0.0.1:41", forwarded: []string{"10.9.9.9, 10.2.2.2"}, trusted: trusted, want: "10.9.9.9"},
		{name: "with a port", peer: "10.0.0.1:41", forwarded: []string{"198.51.100.1:5000"}, trusted: trusted, want: "198.51.100.1"},
		{name: "bracketed IPv6 with a port", peer: "[fd00::1]:41", forwarded: []string{"[2001:db8::1]:5000"}, trusted: trusted, want: "2001:db8::/64"},
		{name: "bracketed IPv6", peer: "[fd00::1]:41", forwarded: []string{"[2001:db8::1]"}, trusted: trusted, want: "2001:db8::/64"},
		{name: "no address in the hop", peer: "10.0.0.1:41", forwarded: []string{"198.51.100.1, unknown"}, trusted: trusted, want: "10.0.0.1"},
		{name: "empty header", peer: "10.0.0.1:41", forwarded: []string{""}, trusted: trusted, want: "10.0.0.1"},
		{name: "trusted peer without the header", peer: "10.0.0.1:41", trusted: trusted, want: "10.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Real-Ip": {"203.0.113.50"}, "Forwarded": {"for=203.0.113.51"}, "True-Client-Ip": {"203.0.113.52"}}}
			if c.forwarded != nil {
				r.Header["X-Forwarded-For"] = c.forwarded
			}
			if got, want := api.SenderOf(r, c.trusted), (api.Sender{Key: c.want, Unheeded: c.unheeded}); got != want {
				t.Errorf("SenderOf = %+v; want %+v", got, want)
			}
		})
	}
}
