package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"millwright/runs/worker"
	"millwright/runs/worker/preset"
	"millwright/state"
	"millwright/trace"
)

var factoryNameForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

// Check returns all errors of the settings, without opening anything.
func (s *Settings) Check() error {
	var all []error
	for _, wrong := range s.check() {
		all = append(all, wrong)
	}
	return errors.Join(all...)
}

func (s *Settings) check() []*settingError {
	c := &checks{}
	c.factories(s)
	c.forges(s)
	c.environments(s)
	c.harnesses(s)
	c.addresses(s)
	c.outbound(s)
	c.amounts(s)
	c.auth(s)
	return c.wrong
}

func (c *checks) factories(s *Settings) {
	seen := map[string]bool{}
	for i, f := range s.Factories {
		at := fmt.Sprintf("factories[%d]", i)
		if !factoryNameForm.MatchString(f.Name) {
			c.bad(at+".name", " %q: want 1 to 64 letters, digits, '.', '_' or '-'", f.Name)
		} else if seen[f.Name] {
			c.bad(at+".name", ": %q is there twice", f.Name)
		}

		seen[f.Name] = true
		kinds := 0
		for _, given := range []bool{f.Source.Dir != "", f.Source.Git != nil, f.Source.Managed != nil} {
			if given {
				kinds++
			}
		}

		if kinds != 1 {
			c.bad(at+".source", ": want exactly one of dir, git and managed")
		}

		if g := f.Source.Git; g != nil {
			if g.URL == "" {
				c.bad(at+".source.git.url", " is missing")
			}
			if v := g.Verify; v != nil && v.SSH == "" && v.OpenPGP == "" {
				c.bad(at+".source.git.verify", ": give ssh, a file of allowed signers, or openpgp, a keyring")
			}
			if g.PushScheme != "" && !slices.Contains([]string{"github", "gitlab", "gitea"}, g.PushScheme) {
				c.bad(at+".source.git.pushScheme", " %q: want github, gitlab or gitea", g.PushScheme)
			}
		}
	}
}

func (c *checks) harnesses(s *Settings) {
	harnesses := s.HarnessUpdate()
	for _, name := range slices.Sorted(maps.Keys(s.Harnesses)) {
		h, at := s.Harnesses[name], "harnesses."+name
		switch {
		case len(h.Command) == 0 && h.Container == nil && h.Preset == "":
			c.bad(at, ": give command, or preset for a coding agent: %s", strings.Join(preset.Names(), ", "))
		case h.User == "" && len(h.Users) == 0 && h.UIDRange == "" &&
			h.Container == nil && h.Sandbox == nil && !h.SameUser:
			c.bad(at, ": agents work on text that outsiders wrote: give user, users or uidRange (other "+
				"accounts to run as), container, sandbox: bubblewrap, or sameUser: true")
		case c.sandbox(at+".sandbox", h.Sandbox):
		default:
			if err := harnesses.Harnesses[name].Check(); err != nil {
				c.bad(at, ": %w", err)
			}
		}
	}

	if name, err := harnesses.Overlap(); err != nil {
		c.bad("harnesses."+name+".uidRange", " %w", err)
	}

	if s.Harness != "" && s.Harness != "echo" {
		if _, ok := s.Harnesses[s.Harness]; !ok {
			c.bad("harness", " %q is not one of harnesses", s.Harness)
		}
	}
}

// sandbox reports whether something is wrong with a sandbox, and notes it with its place.
func (c *checks) sandbox(at string, s *worker.Sandbox) bool {
	if s == nil {
		return false
	}

	below, err := s.Check()
	if err != nil {
		c.bad(at+below, ": %w", err)
	}
	return err != nil
}

func (c *checks) addresses(s *Settings) {
	if _, err := s.Proxies(); err != nil {
		c.bad("trustedProxies", ": %w", err)
	}

	if s.PublicURL != "" {
		u, err := url.Parse(s.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			strings.Trim(u.Path, "/") != "" {
			c.bad("publicUrl", " %q: want an origin like https://hooks.example.com", s.PublicURL)
		}
	}

	if s.OTLPEndpoint != "" {
		if _, err := trace.CheckEndpoint(s.OTLPEndpoint); err != nil {
			c.bad("otlpEndpoint", ": %w", err)
		}
	}

	if strings.Contains(s.State, "://") {
		if _, ok := state.SQLitePath(s.State); ok {
			c.bad("state", ": want a path, sqlite:PATH or postgres://…")
		}
	}

	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		c.bad("tls", ": give both cert and key")
	}
}

func (c *checks) amounts(s *Settings) {
	for _, model := range slices.Sorted(maps.Keys(s.Prices)) {
		if p := s.Prices[model]; min(p.Input, p.CachedInput, p.Output) < 0 {
			c.bad("prices."+model, ": want US dollars for a million tokens, 0 or more")
		}
	}

	if s.Limits.RunsPerFactory < 0 {
		c.bad("limits", ".runsPerFactory: want a number of runs, or 0 for no limit")
	}
	if s.Limits.RunsPerAutomation < 0 {
		c.bad("limits", ".runsPerAutomation: want a number of runs, or 0 for no limit")
	}
	if days := s.Retention.Runs.Days; days < 0 {
		c.bad("retention.runs.days", " %d: want 0 or more", days)
	}
	if days := s.Retention.Audit.Days; days < 0 || days > 36_500 {
		c.bad("retention.audit.days", " %d: want 1 to 36500", days)
	}
}
