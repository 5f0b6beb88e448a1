// Package settings reads and checks the settings file of a server or worker. Errors have their place in the
// file.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/runs/worker"
	"millwright/runs/worker/preset"
	"millwright/state"
	"millwright/trace"
)

// DefaultState is the default state of a server.
const DefaultState = ".millwright/state.db"

// Settings are the settings of serve, from the settings file and flags.
type Settings struct {
	Listen         string             `json:"listen"`
	PublicURL      string             `json:"publicUrl"`
	TLS            tlsSettings        `json:"tls"`
	State          string             `json:"state"`
	MasterKeyFile  string             `json:"masterKeyFile"`
	TrustedProxies []string           `json:"trustedProxies"`
	CORSOrigins    []string           `json:"corsOrigins"`
	MetricsListen  string             `json:"metricsListen"`
	OTLPEndpoint   string             `json:"otlpEndpoint"`
	Grace          Duration           `json:"grace"`
	Workers        *int               `json:"workers"`
	NATS           NATS               `json:"nats"`
	Factories      []Factory          `json:"factories"`
	SharedSecrets  []string           `json:"sharedSecrets"`
	Harness        string             `json:"harness"`
	Harnesses      map[string]harness `json:"harnesses"`
	Prices         map[string]Price   `json:"prices"`
	Limits         limits             `json:"limits"`
	Retention      Retention          `json:"retention"`
}

type tlsSettings struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// NATS configures the connection of servers and workers.
type NATS struct {
	Listen      string   `json:"listen"`
	Cluster     []string `json:"cluster"`
	URL         string   `json:"url"`
	Credentials string   `json:"credentials"`
}

// Factory is a factory of the server.
type Factory struct {
	Name      string `json:"name"`
	Suspended bool   `json:"suspended"`
	Source    Source `json:"source"`
}

// Source is the source of a definition: exactly one of its fields is set.
type Source struct {
	Dir         string    `json:"dir"`
	Git         *Git      `json:"git"`
	Managed     *struct{} `json:"managed"`
	Interval    Duration  `json:"interval"`
	AllowPrune  bool      `json:"allowPrune"`
	AllowRename bool      `json:"allowRename"`
}

// Git is a branch of a git repository.
type Git struct {
	URL          string   `json:"url"`
	Branch       string   `json:"branch"`
	Tag          string   `json:"tag"`
	Commit       string   `json:"commit"`
	Path         string   `json:"path"`
	Interval     Duration `json:"interval"`
	TokenSecret  string   `json:"tokenSecret"`
	Username     string   `json:"username"`
	SSHKeySecret string   `json:"sshKeySecret"`
	KnownHosts   string   `json:"knownHosts"`
	PushSecret   string   `json:"pushSecret"`
	PushScheme   string   `json:"pushScheme"`
}

type harness struct {
	Command   []string          `json:"command"`
	Preset    string            `json:"preset"`
	Program   string            `json:"program"`
	Args      []string          `json:"args"`
	Trust     bool              `json:"trustRepositorySettings"`
	Adapter   string            `json:"adapter"`
	Models    []string          `json:"models"`
	Env       []string          `json:"env"`
	Timeout   Duration          `json:"timeout"`
	Path      string            `json:"path"`
	User      string            `json:"user"`
	Users     []string          `json:"users"`
	UIDRange  string            `json:"uidRange"`
	SameUser  bool              `json:"sameUser"`
	Container *worker.Container `json:"container"`
}

// Price is the price of a language model, in US dollars for a million tokens.
type Price struct {
	Input       float64 `json:"input"`
	CachedInput float64 `json:"cachedInput"`
	Output      float64 `json:"output"`
}

type limits struct {
	DeliveriesPerMinute rate     `json:"deliveriesPerMinute"`
	FailedAuthPerMinute rate     `json:"failedAuthPerMinute"`
	MaxDeliveries       count    `json:"maxDeliveriesPerMinute"`
	InFlightBytes       byteSize `json:"inFlightBytes"`
	RunsPerFactory      int      `json:"runsPerFactory"`
}

// What a webhook's log keeps at least.
const (
	MinDeliveries   = 50
	MinDeliveryDays = 7
)

// Retention configures how long the server keeps data.
type Retention struct {
	Deliveries struct {
		Keep keptDeliveries `json:"keep"`
		Days keptDays       `json:"days"`
	} `json:"deliveries"`
	Runs struct {
		Days int `json:"days"`
	} `json:"runs"`
	Artifacts struct {
		Bytes keptBytes `json:"bytes"`
	} `json:"artifacts"`
}

// DefaultArtifactBytes is how many bytes of artifacts a factory keeps by default.
const DefaultArtifactBytes = 5 << 30

// Duration is a time span written like 30s or 1h30m.
type Duration time.Duration

// UnmarshalJSON reads a duration in Go's form.
func (d *Duration) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	if err != nil {
		return errors.New("want a duration like 30s")
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration: want one like 30s or 1h", text)
	}
	*d = Duration(v)
	return nil
}

// Or returns the duration, or fallback where it is zero.
func (d Duration) Or(fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return time.Duration(d)
}

// rate is a number of requests a minute, or -1 for no limit; 0 where the settings leave it out.
type rate int

// UnmarshalJSON reads a rate. It refuses 0, which would mean the default.
func (r *rate) UnmarshalJSON(b []byte) error {
	n, err := strconv.Atoi(string(b))
	if err != nil || n < -1 || n == 0 {
		return fmt.Errorf("%s is not a limit: want 1 or more, or -1 for none; leave it out for the default", b)
	}
	*r = rate(n)
	return nil
}

// count is a number of requests a minute; 0 where the settings leave it out.
type count int

// UnmarshalJSON reads a count. It refuses 0, which would mean the default.
func (c *count) UnmarshalJSON(b []byte) error { return atLeast((*int)(c), b, 1) }

// keptDeliveries and keptDays bound a webhook's log; 0 if the settings omit them.
type (
	keptDeliveries int
	keptDays       int
)

// UnmarshalJSON refuses less than every log keeps.
func (k *keptDeliveries) UnmarshalJSON(b []byte) error {
	return atLeast((*int)(k), b, MinDeliveries)
}

// UnmarshalJSON refuses less than every log keeps.
func (k *keptDays) UnmarshalJSON(b []byte) error { return atLeast((*int)(k), b, MinDeliveryDays) }

func atLeast(to *int, b []byte, least int) error {
	n, err := strconv.Atoi(string(b))
	if err != nil || n < least {
		return fmt.Errorf("%s is not possible: want %d or more", b, least)
	}
	*to = n
	return nil
}

// byteSize is a number of bytes, written as it is or like 64MiB.
type byteSize int64

var byteSizeForm = regexp.MustCompile(`^(\d{1,12})\s*(|B|KiB|MiB|GiB|KB|MB|GB)$`)

// UnmarshalJSON reads a size in bytes, or with a unit.
func (n *byteSize) UnmarshalJSON(b []byte) error {
	m := byteSizeForm.FindStringSubmatch(strings.Trim(string(b), `"`))
	if m == nil {
		return fmt.Errorf("%s is not a size: want one like 64MiB", b)
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	*n = byteSize(
		v * map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 1e3, "MB": 1e6, "GB": 1e9}[m[2]],
	)
	return err
}

// keptBytes bounds what a factory keeps; 0 if the settings omit it.
type keptBytes byteSize

// minKeptBytes is the smallest bound.
const minKeptBytes = 1_000_000

// UnmarshalJSON reads a size. It refuses one that would keep nothing.
func (n *keptBytes) UnmarshalJSON(b []byte) error {
	err := (*byteSize)(n).UnmarshalJSON(b)
	if err == nil && *n < minKeptBytes {
		return fmt.Errorf("%s is not possible: want 1MB or more", b)
	}
	return err
}

var factoryNameForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

// settingError is an error of a setting.
type settingError struct {
	at  string // its place, as factories[0].name
	err error
}

func (e *settingError) Error() string { return e.at + e.err.Error() }

func (e *settingError) Unwrap() error { return e.err }

// Check returns an error of the settings, without opening anything. The error is a settingError.
func (s *Settings) Check() error {
	bad := func(at, format string, args ...any) error { return &settingError{at, fmt.Errorf(format, args...)} }
	seen := map[string]bool{}
	for i, f := range s.Factories {
		if !factoryNameForm.MatchString(f.Name) {
			return bad(
				fmt.Sprintf("factories[%d].name", i),
				" %q: want 1 to 64 letters, digits, '.', '_' or '-'",
				f.Name,
			)
		}

		if seen[f.Name] {
			return bad(fmt.Sprintf("factories[%d].name", i), ": %q is there twice", f.Name)
		}

		seen[f.Name] = true
		kinds := 0
		for _, given := range []bool{f.Source.Dir != "", f.Source.Git != nil, f.Source.Managed != nil} {
			if given {
				kinds++
			}
		}

		if kinds != 1 {
			return bad(fmt.Sprintf("factories[%d].source", i), ": want exactly one of dir, git and managed")
		}

		if g := f.Source.Git; g != nil {
			if g.URL == "" {
				return bad(fmt.Sprintf("factories[%d].source.git.url", i), " is missing")
			}
			if g.PushScheme != "" && !slices.Contains([]string{"github", "gitlab", "gitea"}, g.PushScheme) {
				return bad(
					fmt.Sprintf("factories[%d].source.git.pushScheme", i),
					" %q: want github, gitlab or gitea",
					g.PushScheme,
				)
			}
		}
	}

	harnesses := s.HarnessUpdate()
	for _, name := range slices.Sorted(maps.Keys(s.Harnesses)) {
		h := s.Harnesses[name]
		if len(h.Command) == 0 && h.Container == nil && h.Preset == "" {
			return bad("harnesses."+name, ": give command, or preset for a coding agent: %s", strings.Join(preset.Names(), ", "))
		}

		if h.User == "" && len(h.Users) == 0 && h.UIDRange == "" && h.Container == nil && !h.SameUser {
			return bad(
				"harnesses."+name,
				": agents work on text that outsiders wrote: give user, users or uidRange (other "+
					"accounts to run as), container, or sameUser: true",
			)
		}

		if err := harnesses.Harnesses[name].Check(); err != nil {
			return bad("harnesses."+name, ": %w", err)
		}
	}

	if name, err := harnesses.Overlap(); err != nil {
		return bad("harnesses."+name+".uidRange", " %w", err)
	}

	if s.Harness != "" && s.Harness != "echo" {
		if _, ok := s.Harnesses[s.Harness]; !ok {
			return bad("harness", " %q is not one of harnesses", s.Harness)
		}
	}

	for _, model := range slices.Sorted(maps.Keys(s.Prices)) {
		if p := s.Prices[model]; min(p.Input, p.CachedInput, p.Output) < 0 {
			return bad("prices."+model, ": want US dollars for a million tokens, 0 or more")
		}
	}

	if _, err := s.Proxies(); err != nil {
		return bad("trustedProxies", ": %w", err)
	}

	if s.PublicURL != "" {
		if u, err := url.Parse(s.PublicURL); err != nil || u.Scheme != "http" && u.Scheme != "https" ||
			u.Host == "" ||
			strings.Trim(u.Path, "/") != "" {
			return bad("publicUrl", " %q: want an origin like https://hooks.example.com", s.PublicURL)
		}
	}

	if s.OTLPEndpoint != "" {
		if _, err := trace.CheckEndpoint(s.OTLPEndpoint); err != nil {
			return bad("otlpEndpoint", ": %w", err)
		}
	}

	if strings.Contains(s.State, "://") {
		if _, ok := state.SQLitePath(s.State); ok {
			return bad("state", ": want a path, sqlite:PATH or postgres://…")
		}
	}

	if s.Limits.RunsPerFactory < 0 {
		return bad("limits", ".runsPerFactory: want a number of runs, or 0 for no limit")
	}
	if days := s.Retention.Runs.Days; days < 0 {
		return bad("retention.runs.days", " %d: want 0 or more", days)
	}
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		return bad("tls", ": give both cert and key")
	}

	return nil
}

// Proxies returns the networks of trustedProxies. The error names the entry that is neither address nor network.
func (s *Settings) Proxies() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range s.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("%q is not an address or a network like 10.0.0.0/8", text)
			}

			p = netip.PrefixFrom(a, a.BitLen())
		}

		all = append(all, p.Masked())
	}

	return all, nil
}

// AdminKeyFile returns the file with the first key of a SQLite state, for client commands on this machine.
func AdminKeyFile(statePath string) string {
	return filepath.Join(filepath.Dir(statePath), "admin-key")
}
