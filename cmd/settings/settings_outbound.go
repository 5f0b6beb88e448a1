package settings

import (
	"fmt"
	"net/netip"
)

// prefixes returns the networks. The error names the entry that is none.
func (o Outbound) prefixes() ([]netip.Prefix, error) { return networks(o.Allow) }

// OutboundOf returns the networks that events of a factory may be sent to beside public addresses.
func (s *Settings) OutboundOf(factory string) []netip.Prefix {
	all, _ := s.Outbound.prefixes() // checked when the settings were read
	for _, f := range s.Factories {
		if f.Name == factory {
			own, _ := f.Outbound.prefixes()
			all = append(all, own...)
		}
	}
	return all
}

func (c *checks) outbound(s *Settings) {
	if _, err := s.Outbound.prefixes(); err != nil {
		c.bad("outbound.allow", ": %w", err)
	}
	for i, f := range s.Factories {
		if _, err := f.Outbound.prefixes(); err != nil {
			c.bad(fmt.Sprintf("factories[%d].outbound.allow", i), ": %w", err)
		}
	}
}
