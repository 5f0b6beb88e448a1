// Package settings reads and checks the settings file of a server or worker. Errors have their place in the
// file.
package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"millwright/runs/worker"
	"millwright/schema"
)

// DefaultState is the default state of a server.
const DefaultState = ".millwright/state.db"

// Auth configures who may use the server beside the holders of API keys.
type Auth struct {
	OIDC  []OIDC `json:"oidc"`
	Login *Login `json:"login"`
}

// Login has people sign in to the dashboard at an OpenID Connect issuer.
type Login struct {
	Issuer           string       `json:"issuer"`
	ClientID         string       `json:"clientId"`
	ClientSecretFile string       `json:"clientSecretFile"`
	Scopes           []string     `json:"scopes"`
	Roles            []PersonRole `json:"roles"`
}

// PersonRole grants a role to people with a value of a claim.
type PersonRole struct {
	Claim     string   `json:"claim"`
	Value     string   `json:"value"`
	Role      string   `json:"role"`
	Factories []string `json:"factories"`
}

// OIDC grants a role to the ID tokens of an OpenID Connect issuer.
type OIDC struct {
	Issuer    string            `json:"issuer"`
	Audience  string            `json:"audience"`
	Claims    map[string]string `json:"claims"`
	Role      string            `json:"role"`
	Factories []string          `json:"factories"`
}

// Environment is what runs execute in that name it.
type Environment struct {
	DockerImage   string              `json:"dockerImage"`
	Repositories  []schema.Repository `json:"repositories"`
	SetupCommands []string            `json:"setupCommands"`
	Env           map[string]string   `json:"env"`
	Secrets       []string            `json:"secrets"`
}

// Forge is a host of repositories.
type Forge struct {
	Kind        string `json:"kind"`
	URL         string `json:"url"`
	API         string `json:"api"`
	TokenSecret string `json:"tokenSecret"`
	Username    string `json:"username"`
	App         *App   `json:"app"`
}

// App is a GitHub App.
type App struct {
	ID               int    `json:"id"`
	PrivateKeySecret string `json:"privateKeySecret"`
}

// Outbound configures what the server sends to receivers that definitions name.
type Outbound struct {
	// Allow lists addresses and networks that are not public and that events may be sent to, also by http.
	Allow []string `json:"allow"`
}

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
	Forges         map[string]Forge   `json:"forges"`
	DefaultForge   string             `json:"defaultForge"`
	Harness        string             `json:"harness"`
	Harnesses      map[string]harness `json:"harnesses"`
	Prices         map[string]Price   `json:"prices"`

	Environments map[string]Environment `json:"environments"`

	Outbound  Outbound  `json:"outbound"`
	Auth      Auth      `json:"auth"`
	Limits    limits    `json:"limits"`
	Retention Retention `json:"retention"`

	File string `json:"-"` // that they were read from
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
	Name         string   `json:"name"`
	Suspended    bool     `json:"suspended"`
	Source       Source   `json:"source"`
	Repositories []string `json:"repositories"`
	Outbound     Outbound `json:"outbound"`
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
	Verify       *Verify  `json:"verify"`
	Checks       *bool    `json:"checks"`
}

// Verify names the files with the keys that must have signed a commit.
type Verify struct {
	SSH     string `json:"ssh"`     // allowed_signers
	OpenPGP string `json:"openpgp"` // a keyring
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
	Sandbox   *worker.Sandbox   `json:"sandbox"`
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
	RunsPerAutomation   int      `json:"runsPerAutomation"`
	Budget              Budget   `json:"budget"`
}

// Budget bounds what the runs of all factories may use together. Days are of UTC.
type Budget struct {
	TokensPerRun bound       `json:"tokensPerRun"`
	USDPerRun    dollarBound `json:"usdPerRun"`
	TokensPerDay bound       `json:"tokensPerDay"`
	USDPerDay    dollarBound `json:"usdPerDay"`
	RunsPerDay   bound       `json:"runsPerDay"`
}

// bound is a limit of a budget; 0 if the settings omit it.
type bound int64

// UnmarshalJSON reads a bound. It refuses 0, which would mean none.
func (v *bound) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n < 1 || n > maxTokens {
		return fmt.Errorf("%s is not possible: want 1 to %d; leave it out for no limit", b, int64(maxTokens))
	}
	*v = bound(n)
	return nil
}

// dollarBound is a limit of a budget in US dollars; 0 if the settings omit it.
type dollarBound float64

// UnmarshalJSON reads a bound. It refuses 0, which would mean none.
func (v *dollarBound) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(n > 0) || n > maxDollars {
		return fmt.Errorf("%s is not possible: want more than 0; leave it out for no limit", b)
	}
	*v = dollarBound(n)
	return nil
}

// The greatest limits of budgets, as definition files have them.
const (
	maxTokens  = 1_000_000_000_000
	maxDollars = 1_000_000_000
)

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
	Audit struct {
		Days int `json:"days"`
	} `json:"audit"`
}

// DefaultAuditDays is how many days the audit log keeps a change by default.
const DefaultAuditDays = 400

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
	units := map[string]int64{
		"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	}
	*n = byteSize(v * units[m[2]])
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

// Proxies returns the networks of trustedProxies. The error names the entry that is neither address nor network.
func (s *Settings) Proxies() ([]netip.Prefix, error) { return networks(s.TrustedProxies) }

// networks parses addresses and networks. The error names the entry that is neither.
func networks(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
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
