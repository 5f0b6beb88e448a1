package forge

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// OfSource returns the forge that has the repository at an address of git, and that repository. The address is
// https://…, ssh://…, or user@host:path. ok is false unless the settings have a forge at that host, with an API
// and a credential for it. The default forge comes first, then others by name.
func (s *Set) OfSource(address string) (f Forge, repo Repository, ok bool) {
	now := s.current.Load()
	names := slices.Sorted(maps.Keys(now.forges))
	for _, name := range append([]string{now.fallback}, names...) {
		f := now.forges[name]
		if f == nil {
			continue
		}
		if repo, ok := f.locate(address); ok {
			repo.Forge = name
			return f, repo, true
		}
	}

	return nil, Repository{}, false
}

func (h *host) locate(address string) (Repository, bool) {
	if h.kind == Git || !h.known {
		return Repository{}, false
	}

	path, ok := h.pathOf(address)
	if !ok {
		return Repository{}, false
	}

	repo, err := ParseRepository(strings.TrimSuffix(strings.Trim(path, "/"), ".git"))
	return repo, err == nil && checkName(h.name, h.kind, repo) == nil
}

// pathOf returns the path of an address that is at this host.
func (h *host) pathOf(address string) (string, bool) {
	if !strings.Contains(address, "://") { // user@host:path
		at, path, ok := strings.Cut(address, ":")
		return path, ok && strings.EqualFold(at[strings.LastIndexByte(at, '@')+1:], h.url.Hostname())
	}

	u, err := url.Parse(address)
	if err != nil {
		return "", false
	}

	switch u.Scheme {
	case "ssh":
		return u.Path, strings.EqualFold(u.Hostname(), h.url.Hostname())
	case "http", "https":
		path, below := strings.CutPrefix(u.Path, strings.TrimSuffix(h.url.Path, "/")+"/")
		return path, below && isOrigin(u, h.url)
	}

	return "", false
}
